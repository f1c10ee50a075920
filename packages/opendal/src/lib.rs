//! Requests to object storages, signed and interpreted by OpenDAL and made by the
//! page. `request` is the only export; packages/browser/opendal.js calls it.

use futures::stream;
use http::{Request, Response, StatusCode};
use js_sys::{Array, Function, JsString, Promise, Reflect, Uint8Array};
use opendal_core::options::{DeleteOptions, ReaderOptions, WriteOptions};
use opendal_core::{
    Buffer, Error, ErrorKind, HttpBody, HttpTransport, HttpTransporter, Metadata, OperationContext,
    Operator, Result,
};
use opendal_service_azblob::Azblob;
use opendal_service_s3::S3;
use send_wrapper::SendWrapper;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

/// Reads, writes or deletes the object `key`, and returns its version and content.
/// The settings have the service, the bucket and the credentials, which are used
/// for this request only. `fetch(method, url, headers, body)` makes the requests of
/// HTTP. Fails with an Error whose name is OpenDAL's kind of error.
#[wasm_bindgen]
pub async fn request(
    settings: js_sys::Object,
    method: String,
    key: String,
    if_match: Option<String>,
    if_none_match: Option<String>,
    body: Option<Vec<u8>>,
    fetch: Function,
) -> std::result::Result<Array, JsValue> {
    let done = async {
        let bucket = open(Settings(settings), fetch)?;
        match method.as_str() {
            "GET" => {
                let options = ReaderOptions {
                    if_match,
                    if_none_match,
                    ..Default::default()
                };
                let reader = bucket.reader_options(&key, options).await?;
                let content = reader.read(..).await?;
                Ok((reader.metadata().and_then(version), content))
            }
            "PUT" => {
                let absent = if_none_match.as_deref() == Some("*");
                let options = WriteOptions {
                    if_match,
                    if_not_exists: absent,
                    if_none_match: if_none_match.filter(|_| !absent),
                    ..Default::default()
                };
                let body = body.unwrap_or_default();
                let written = bucket.write_options(&key, body, options).await?;
                Ok((version(&written), Buffer::new()))
            }
            "DELETE" => {
                let options = DeleteOptions {
                    if_match,
                    if_none_match,
                    ..Default::default()
                };
                bucket.delete_options(&key, options).await?;
                Ok((None, Buffer::new()))
            }
            _ => Err(Error::new(ErrorKind::Unsupported, "unknown method")),
        }
    };
    match done.await {
        Ok((version, content)) => {
            let content = Uint8Array::from(content.to_bytes().as_ref());
            Ok(Array::of2(&version.into(), &content))
        }
        Err(e) => {
            let failure = js_sys::Error::new(e.message());
            failure.set_name(e.kind().into_static());
            Err(failure.into())
        }
    }
}

fn version(of: &Metadata) -> Option<String> {
    of.etag().map(str::to_string)
}

struct Settings(js_sys::Object);

impl Settings {
    /// Returns a setting, empty if it is absent.
    fn text(&self, name: &str) -> String {
        let value = Reflect::get(&self.0, &name.into()).ok();
        value.and_then(|v| v.as_string()).unwrap_or_default()
    }
}

/// Returns the bucket of a request.
fn open(settings: Settings, fetch: Function) -> Result<Operator> {
    let text = |name| settings.text(name);
    let operator = match text("service").as_str() {
        "s3" => {
            let mut s3 = S3::default()
                .bucket(&text("bucket"))
                .endpoint(&text("endpoint"))
                .region(&text("region"))
                .access_key_id(&text("accessKeyId"))
                .secret_access_key(&text("secretAccessKey"))
                .session_token(&text("sessionToken"))
                .disable_config_load()
                .disable_ec2_metadata();
            if text("style") == "virtual" {
                s3 = s3.enable_virtual_host_style();
            }
            Operator::new(s3)?
        }
        "azblob" => Operator::new(
            Azblob::default()
                .container(&text("bucket"))
                .endpoint(&text("endpoint"))
                .account_name(&text("account"))
                .account_key(&text("accountKey"))
                .sas_token(&text("sasToken")),
        )?,
        _ => return Err(Error::new(ErrorKind::ConfigInvalid, "unknown service")),
    };
    let page = HttpTransporter::new(Page(SendWrapper::new(fetch)));
    Ok(operator.with_context(OperationContext::new().with_http_transport(page)))
}

/// The page's fetch, which belongs to the one thread of a page.
struct Page(SendWrapper<Function>);

impl HttpTransport for Page {
    async fn fetch(&self, request: Request<Buffer>) -> Result<Response<HttpBody>> {
        let (head, body) = request.into_parts();
        let headers = Array::new();
        for (name, value) in &head.headers {
            let value = value
                .to_str()
                .map_err(|_| failed("a header is not ASCII"))?;
            headers.push(&Array::of2(&name.as_str().into(), &value.into()));
        }
        let arguments = Array::of4(
            &head.method.as_str().into(),
            &head.uri.to_string().into(),
            &headers,
            &Uint8Array::from(body.to_bytes().as_ref()),
        );
        let promise = self
            .0
            .apply(&JsValue::NULL, &arguments)
            .map_err(|_| failed("fetch"))?;
        let answer = JsFuture::from(Promise::resolve(&promise))
            .await
            .map_err(|_| failed("fetch"))?;
        let answer: Array = answer.unchecked_into();
        let status = answer.get(0).as_f64().unwrap_or_default() as u16;
        let mut response =
            Response::builder().status(StatusCode::from_u16(status).map_err(|_| failed("status"))?);
        for header in answer.get(1).unchecked_into::<Array>().iter() {
            let header: Array = header.unchecked_into();
            let text = |i| String::from(header.get(i).unchecked_into::<JsString>());
            response = response.header(text(0), text(1));
        }
        let content = Buffer::from(answer.get(2).unchecked_into::<Uint8Array>().to_vec());
        let body = HttpBody::new(stream::iter([Ok(content)]), None);
        response.body(body).map_err(|_| failed("headers"))
    }
}

/// The page knows why its fetch has failed.
fn failed(what: &'static str) -> Error {
    Error::new(ErrorKind::Unexpected, what)
}
