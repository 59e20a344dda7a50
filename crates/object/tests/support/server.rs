//! An S3 server on loopback whose answers can be spoilt. Not every test uses all of it.
#![allow(dead_code)]

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s_fs::FileSystem;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

pub(crate) const ACCESS_KEY: &str = "AKEXAMPLE";
pub(crate) const SECRET_KEY: &str = "secret-of-the-example";

/// How a request is answered instead of rightly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// "503 Slow Down".
    SlowDown,
    /// The connection is closed in the middle of the answer.
    Cut,
    /// The answer claims to be of another version.
    OtherEtag,
    /// "400 Bad Request", as for credentials that have expired.
    Expired,
}

type Judge = Box<dyn FnMut(&str, &str) -> Option<Fault> + Send>;

#[derive(Default)]
struct Inner {
    judge: Option<Judge>,
    seen: Vec<String>,
}

/// What it is told, and what it has seen.
#[derive(Clone, Default)]
pub(crate) struct Control(Arc<Mutex<Inner>>);

impl Control {
    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on `judge` says of each method and URI what goes wrong.
    #[allow(dead_code)]
    pub(crate) fn judge(&self, judge: impl FnMut(&str, &str) -> Option<Fault> + Send + 'static) {
        self.lock().judge = Some(Box::new(judge));
    }

    /// All is well again.
    #[allow(dead_code)]
    pub(crate) fn relent(&self) {
        self.lock().judge = None;
    }

    /// Method and URI of every request since the last time this was asked.
    #[allow(dead_code)]
    pub(crate) fn seen(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().seen)
    }

    fn fault(&self, method: &str, uri: &str) -> Option<Fault> {
        let mut inner = self.lock();
        inner.seen.push(format!("{method} {uri}"));
        inner.judge.as_mut()?(method, uri)
    }
}

/// A server; it ends when it is dropped.
pub(crate) struct Server {
    pub(crate) endpoint: String,
    #[allow(dead_code)]
    pub(crate) control: Control,
    _runtime: Runtime,
}

impl Server {
    /// Serves the buckets that are the directories of `root`.
    pub(crate) fn start(root: &Path, port: u16) -> Self {
        let mut builder = S3ServiceBuilder::new(FileSystem::new(root).unwrap());
        builder.set_auth(SimpleAuth::from_single(ACCESS_KEY, SECRET_KEY));
        let service = builder.build();
        let control = Control::default();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", port))).unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let judge = control.clone();
        let root = root.to_path_buf();
        runtime.spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (service, judge, root) = (service.clone(), judge.clone(), root.clone());
                tokio::spawn(async move {
                    let answer = service_fn(move |request: http::Request<Incoming>| {
                        let (service, judge) = (service.clone(), judge.clone());
                        let is_directory = is_directory(&root, request.uri().path());
                        answer(service, judge, request, is_directory)
                    });
                    let connection = hyper::server::conn::http1::Builder::new();
                    let _ = connection.serve_connection(TokioIo::new(socket), answer).await;
                });
            }
        });
        Self { endpoint, control, _runtime: runtime }
    }

    /// The variables of the environment that lead here.
    pub(crate) fn variables(&self) -> Vec<(String, String)> {
        [
            ("AWS_ACCESS_KEY_ID", ACCESS_KEY),
            ("AWS_SECRET_ACCESS_KEY", SECRET_KEY),
            ("AWS_ENDPOINT_URL", &self.endpoint),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_REGION", "us-east-1"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
    }
}

/// Whether a key is that of a directory: asked about it, this server fails where others have no such object.
fn is_directory(root: &Path, path: &str) -> bool {
    let mut bytes = Vec::new();
    let mut rest = path.trim_start_matches('/').as_bytes();
    while let [first, after @ ..] = rest {
        let escaped = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        match escaped.and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    root.join(String::from_utf8_lossy(&bytes).as_ref()).is_dir()
}

type Answer = http::Response<s3s::Body>;

async fn answer(
    service: S3Service,
    judge: Control,
    request: http::Request<Incoming>,
    is_directory: bool,
) -> Result<Answer, s3s::HttpError> {
    let (method, uri) = (request.method().to_string(), request.uri().to_string());
    let request = request.map(s3s::Body::from);
    let error = |status: u16, code: &str| {
        let body = format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code></Error>");
        let mut answer = Answer::new(s3s::Body::from(body));
        *answer.status_mut() = http::StatusCode::from_u16(status).unwrap();
        answer
    };
    match judge.fault(&method, &uri) {
        None if is_directory && method == "HEAD" => {
            let mut answer = Answer::new(s3s::Body::empty());
            *answer.status_mut() = http::StatusCode::NOT_FOUND;
            Ok(answer)
        }
        None => service.call(request).await,
        Some(Fault::SlowDown) => Ok(error(503, "SlowDown")),
        Some(Fault::Expired) => Ok(error(400, "ExpiredToken")),
        Some(Fault::OtherEtag) => {
            let mut answer = service.call(request).await?;
            answer.headers_mut().insert("etag", "\"another\"".parse().unwrap());
            Ok(answer)
        }
        Some(Fault::Cut) => {
            // Less than was announced: the connection ends with it.
            let mut answer = service.call(request).await?;
            let len = answer.headers().get("content-length").cloned();
            *answer.body_mut() = s3s::Body::from(vec![0_u8; 3]);
            if let Some(len) = len {
                answer.headers_mut().insert("content-length", len);
            }
            Ok(answer)
        }
    }
}
