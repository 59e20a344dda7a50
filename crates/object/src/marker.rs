//! Markers of directories: empty objects whose keys end in a slash, as other tools make them (s3fs, the console). The client
//! library has no such keys, so these two requests are made here; S3 only.

use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3, AwsAuthorizer};
use object_store::client::{HttpRequest, HttpRequestBody};
use object_store::path::Path;
use object_store::signer::Signer;

use crate::runtime::wait;

/// How often a request is made that the service is too busy for.
const TRIES: u32 = 6;

/// What makes and removes markers.
pub(crate) struct Markers {
    client: Arc<AmazonS3>,
    region: String,
    http: reqwest::Client,
}

impl Markers {
    /// `None` where no connection can be made at all.
    pub(crate) fn new(client: &Arc<AmazonS3>, region: String) -> Option<Self> {
        let http = reqwest::Client::builder().timeout(Duration::from_secs(30)).build().ok()?;
        Some(Self { client: Arc::clone(client), region, http })
    }

    pub(crate) fn make(&self, key: &str) -> Result<(), object_store::Error> {
        wait(self.request(http::Method::PUT, key))
    }

    pub(crate) fn remove(&self, key: &str) -> Result<(), object_store::Error> {
        wait(self.request(http::Method::DELETE, key))
    }

    async fn request(&self, method: http::Method, key: &str) -> Result<(), object_store::Error> {
        let path = Path::parse(key)?;
        // The address as the library makes it, of the key without its slash.
        let mut url =
            self.client.signed_url(method.clone(), &path, Duration::from_secs(60)).await?;
        url.set_query(None);
        let with_slash = format!("{}/", url.path());
        url.set_path(&with_slash);
        let credential = self.client.credentials().get_credential().await?;
        let mut tries = 0;
        loop {
            tries += 1;
            let mut request: HttpRequest = http::Request::builder()
                .method(method.clone())
                .uri(url.as_str())
                .body(HttpRequestBody::empty())
                .map_err(failed)?;
            AwsAuthorizer::new(&credential, "s3", &self.region)
                .try_authorize(&mut request, None)?;
            let sent = self.http.request(method.clone(), url.as_str());
            let sent = sent.headers(request.headers().clone()).body(Vec::new()).send().await;
            let answer = sent.map_err(failed)?;
            let status = answer.status();
            if status.is_success() || (status == 404 && method == http::Method::DELETE) {
                return Ok(());
            }
            if (status.is_server_error() || status == 429) && tries < TRIES {
                tokio::time::sleep(Duration::from_millis(100 << tries)).await;
                continue;
            }
            let words = answer.text().await.unwrap_or_default();
            return Err(failed(format!("{status}: {words}")));
        }
    }
}

fn failed(
    source: impl Into<Box<dyn std::error::Error + Send + Sync + 'static>>,
) -> object_store::Error {
    object_store::Error::Generic { store: "S3", source: source.into() }
}
