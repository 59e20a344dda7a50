//! Markers of directories: empty objects whose keys end in a slash, as other tools make them (s3fs, the console). The client
//! library has no such keys, so these two requests are made here; S3 only.

use std::sync::Arc;
use std::time::Duration;

use http::header::CONTENT_LENGTH;
use object_store::aws::{AmazonS3, AwsAuthorizer};
use object_store::client::{HttpRequest, HttpRequestBody};
use object_store::path::Path;
use object_store::signer::Signer;

use crate::runtime::wait;

/// How often a request is made that the service is too busy for.
const TRIES: u32 = 6;

/// What makes and removes markers.
pub(crate) struct Markers {
    pub(crate) client: Arc<AmazonS3>,
    region: String,
    http: reqwest::Client,
    /// Whether every part is to come with a checksum that completing an upload repeats.
    pub(crate) has_checksums: bool,
}

impl Markers {
    /// `None` where no connection can be made at all.
    pub(crate) fn new(client: &Arc<AmazonS3>, region: String, has_checksums: bool) -> Option<Self> {
        let http = reqwest::Client::builder().timeout(Duration::from_secs(30)).build().ok()?;
        Some(Self { client: Arc::clone(client), region, http, has_checksums })
    }

    pub(crate) fn make(&self, key: &str) -> Result<(), object_store::Error> {
        wait(self.request(http::Method::PUT, key))
    }

    pub(crate) fn remove(&self, key: &str) -> Result<(), object_store::Error> {
        wait(self.request(http::Method::DELETE, key))
    }

    async fn request(&self, method: http::Method, key: &str) -> Result<(), object_store::Error> {
        let mut url = self.address(&method, key).await?;
        let with_slash = format!("{}/", url.path());
        url.set_path(&with_slash);
        let removes = method == http::Method::DELETE;
        let (status, words) = self.ask(method, &url, http::HeaderMap::new()).await?;
        if status.is_success() || (status == 404 && removes) {
            return Ok(());
        }
        Err(failed(format!("{status}: {words}")))
    }

    /// The address of a key as the library makes it.
    pub(crate) async fn address(
        &self,
        method: &http::Method,
        key: &str,
    ) -> Result<reqwest::Url, object_store::Error> {
        let path = Path::parse(key)?;
        let mut url =
            self.client.signed_url(method.clone(), &path, Duration::from_secs(60)).await?;
        url.set_query(None);
        Ok(url)
    }

    /// Makes a signed request without a body, several times where the service is busy or cut off.
    pub(crate) async fn ask(
        &self,
        method: http::Method,
        url: &reqwest::Url,
        headers: http::HeaderMap,
    ) -> Result<(http::StatusCode, String), object_store::Error> {
        let credential = self.client.credentials().get_credential().await?;
        let mut tries = 0;
        loop {
            tries += 1;
            let mut request: HttpRequest = http::Request::builder()
                .method(method.clone())
                .uri(url.as_str())
                .body(HttpRequestBody::empty())
                .map_err(failed)?;
            request.headers_mut().extend(headers.clone());
            AwsAuthorizer::new(&credential, "s3", &self.region)
                .try_authorize(&mut request, None)?;
            let sent = self.http.request(method.clone(), url.as_str());
            // Some services want to be told that there is no body.
            let sent = sent.headers(request.headers().clone()).header(CONTENT_LENGTH, 0);
            let sent = sent.body(Vec::new()).send().await;
            let is_last = tries == TRIES;
            let answer = match sent {
                Err(_) if !is_last => None,
                sent => Some(sent.map_err(failed)?),
            };
            let is_busy = |status: http::StatusCode| status.is_server_error() || status == 429;
            match answer {
                Some(answer) if is_last || !is_busy(answer.status()) => {
                    let status = answer.status();
                    return Ok((status, answer.text().await.map_err(failed)?));
                }
                _ => tokio::time::sleep(Duration::from_millis(100 << tries)).await,
            }
        }
    }
}

pub(crate) fn failed(
    source: impl Into<Box<dyn std::error::Error + Send + Sync + 'static>>,
) -> object_store::Error {
    object_store::Error::Generic { store: "S3", source: source.into() }
}
