//! Stores at URLs.

use std::sync::Arc;

use object_store::{ObjectStore, ObjectStoreScheme};
use url::Url;

use crate::error::{Error, Kind, Result};
use crate::objects::ObjectStoreObjects;

/// The store at a URL, and the prefix in it.
pub fn at(url: &str) -> Result<(ObjectStoreObjects, String)> {
    let invalid =
        |what: String| Error::new(Kind::Store, format!("`{}`: {what}", url.escape_debug()));
    let parsed = Url::parse(url).map_err(|error| invalid(format!("this is no URL: {error}")))?;
    let (scheme, prefix) =
        ObjectStoreScheme::parse(&parsed).map_err(|error| invalid(error.to_string()))?;
    let failed = |error: object_store::Error| invalid(error.to_string()).with_source(error);
    // "Directory buckets do not list in lexicographical order" (Amazon's reference of ListObjectsV2), and have this suffix.
    let in_order = match scheme {
        ObjectStoreScheme::AmazonS3 => {
            !parsed.host_str().is_some_and(|host| host.contains("--x-s3"))
        }
        ObjectStoreScheme::GoogleCloudStorage | ObjectStoreScheme::MicrosoftAzure => true,
        _ => false,
    };
    let store: Arc<dyn ObjectStore> = match scheme {
        ObjectStoreScheme::Local => Arc::new(object_store::local::LocalFileSystem::new()),
        ObjectStoreScheme::Memory => Arc::new(object_store::memory::InMemory::new()),
        #[cfg(feature = "aws")]
        ObjectStoreScheme::AmazonS3 => {
            let builder = object_store::aws::AmazonS3Builder::from_env().with_url(url);
            Arc::new(builder.build().map_err(failed)?)
        }
        #[cfg(feature = "gcp")]
        ObjectStoreScheme::GoogleCloudStorage => {
            let builder = object_store::gcp::GoogleCloudStorageBuilder::from_env().with_url(url);
            Arc::new(builder.build().map_err(failed)?)
        }
        #[cfg(feature = "azure")]
        ObjectStoreScheme::MicrosoftAzure => {
            let builder = object_store::azure::MicrosoftAzureBuilder::from_env().with_url(url);
            Arc::new(builder.build().map_err(failed)?)
        }
        #[cfg(feature = "http")]
        ObjectStoreScheme::Http => {
            let options = object_store::ClientOptions::new();
            let builder = object_store::http::HttpBuilder::new()
                .with_url(parsed.origin().ascii_serialization())
                .with_client_options(options.with_allow_http(parsed.scheme() == "http"));
            Arc::new(builder.build().map_err(failed)?)
        }
        other => {
            let _ = failed;
            let feature = match other {
                ObjectStoreScheme::AmazonS3 => "aws",
                ObjectStoreScheme::GoogleCloudStorage => "gcp",
                ObjectStoreScheme::MicrosoftAzure => "azure",
                _ => "http",
            };
            let what = format!(
                "this build cannot open it: it needs the feature `{feature}` of tenarc-store"
            );
            return Err(Error::new(Kind::Unsupported, format!("`{}`: {what}", url.escape_debug())));
        }
    };
    let objects = ObjectStoreObjects::new(store).with_lists_in_order(in_order);
    Ok((objects, prefix.to_string()))
}
