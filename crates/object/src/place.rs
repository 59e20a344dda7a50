//! Where a bucket is, and the client for it with the credentials of its ecosystem.

mod profile;

use std::sync::Arc;
use std::time::Duration;

use address::{Endpoint, ObjectKind, Uri};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::{BackoffConfig, ClientOptions, ObjectStore as Client, RetryConfig};

use crate::error::OpenError;
use crate::marker::Markers;

/// What begins the names of the variables that matter, in lower and upper case.
pub const VARIABLES: [&str; 3] = ["AWS_", "GOOGLE_", "AZURE_"];

/// A bucket, or a web server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Place {
    /// What is spoken there.
    pub kind: ObjectKind,
    /// Its name.
    pub bucket: String,
}

impl Place {
    /// The bucket that an address is in; `None` if it is not in one.
    #[must_use]
    pub fn of(uri: &Uri) -> Option<Self> {
        match &uri.endpoint {
            Endpoint::Object { kind, bucket } => Some(Self { kind: *kind, bucket: bucket.clone() }),
            _ => None,
        }
    }

    /// A client with what the environment says, or `variables` in its place.
    pub(crate) fn client(
        &self,
        variables: Option<&[(String, String)]>,
    ) -> Result<(Arc<dyn Client>, Option<Markers>), OpenError> {
        /// As the libraries read their variables: `AWS_REGION` is the key `aws_region`; what they do not know is none of theirs.
        macro_rules! builder {
            ($builder:ty) => {
                match variables {
                    None => <$builder>::from_env(),
                    Some(all) => all.iter().fold(<$builder>::new(), |builder, (name, value)| {
                        match name.to_ascii_lowercase().parse() {
                            Ok(key) => builder.with_config(key, value),
                            Err(_) => builder,
                        }
                    }),
                }
            };
        }
        let settings = |source| OpenError::Settings { place: self.to_string(), source };
        let bucket = self.bucket.as_str();
        let client: Arc<dyn Client> = match self.kind {
            ObjectKind::S3 => {
                let builder = builder!(AmazonS3Builder);
                let builder = if variables.is_none() { profile::apply(builder)? } else { builder };
                let region = builder.get_config_value(&AmazonS3ConfigKey::Region);
                // What the library takes where none is given.
                let region = region.unwrap_or_else(|| "us-east-1".to_owned());
                let checksums = builder.get_config_value(&AmazonS3ConfigKey::Checksum).is_some();
                let built = builder.with_bucket_name(bucket).with_retry(retry()).build();
                let client = Arc::new(built.map_err(settings)?);
                let markers = Markers::new(&client, region, checksums);
                return Ok((client, markers));
            }
            ObjectKind::Gcs => {
                let builder = builder!(GoogleCloudStorageBuilder);
                let built = builder.with_bucket_name(bucket).with_retry(retry()).build();
                Arc::new(built.map_err(settings)?)
            }
            ObjectKind::Azure => {
                let builder = builder!(MicrosoftAzureBuilder);
                let built = builder.with_container_name(bucket).with_retry(retry()).build();
                Arc::new(built.map_err(settings)?)
            }
            ObjectKind::Https | ObjectKind::Http => {
                let options = ClientOptions::new().with_allow_http(self.kind == ObjectKind::Http);
                let builder = HttpBuilder::new().with_url(self.to_string());
                let built = builder.with_client_options(options).with_retry(retry()).build();
                Arc::new(built.map_err(settings)?)
            }
        };
        Ok((client, None))
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}", self.kind.scheme(), self.bucket)
    }
}

/// How often and how long it is asked again where the service is slow, busy (503) or the connection breaks.
fn retry() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(5),
            base: 2.0,
        },
        max_retries: 8,
        retry_timeout: Duration::from_secs(60),
    }
}
