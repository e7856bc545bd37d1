//! Where the model of a product is, and who pays for it.

use crate::model::ModelServer;

/// What a real product needs of the machine to get through to its model, where there is a proxy.
const WAY_OUT: [&str; 9] = [
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "https_proxy",
    "http_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
];

/// A model that can be talked to.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Its address, up to what every request has; without it, the one that everybody knows.
    pub url: Option<String>,
    /// What is sent with every request.
    pub key: String,
    /// Its name; without it, what whoever talks to it takes by itself.
    pub model: Option<String>,
    /// Variables for whoever talks to it: the way there.
    pub way: Vec<(String, String)>,
    pub(super) patience: Patience,
}

/// What happens to a request that was not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    /// It is made once, so that a script knows what comes.
    None,
    /// What the product thinks is right.
    Usual,
}

impl Endpoint {
    /// Its address with the version of the interface, which is no part of every company's.
    pub(crate) fn v1(&self) -> Option<String> {
        let url = self.url.as_deref()?.trim_end_matches('/');
        Some(format!("{}/v1", url.trim_end_matches("/v1")))
    }

    /// The model whose script a test has written.
    pub(super) fn scripted(server: &ModelServer) -> Endpoint {
        Endpoint {
            model: Some("scripted-model".to_owned()),
            patience: Patience::None,
            ..Endpoint::local(server)
        }
    }

    /// The same, for whoever takes it for a real one.
    pub fn local(server: &ModelServer) -> Endpoint {
        let mut way = vec![("NO_PROXY".to_owned(), "127.0.0.1,localhost".to_owned())];
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
            way.push((name.to_owned(), server.url()));
            way.push((name.to_ascii_lowercase(), server.url()));
        }
        Endpoint {
            url: Some(server.url()),
            key: "scripted-key".to_owned(),
            model: None,
            way,
            patience: Patience::Usual,
        }
    }

    /// The real one of `company`, by the variables `<company>_API_KEY` and, where they are there, `<company>_BASE_URL` and
    /// `<company>_MODEL`.
    ///
    /// # Panics
    ///
    /// When there is no key, or nobody has said with `DSH_LIVE` that it may be used.
    pub fn live(company: &str) -> Endpoint {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let of_company = |what: &str| variable(&format!("{company}_{what}"));
        assert!(
            variable("DSH_LIVE").is_some(),
            "it costs money: run `cargo xtask live`"
        );
        let key = of_company("API_KEY");
        let way = WAY_OUT
            .iter()
            .filter_map(|name| Some((String::from(*name), variable(name)?)));
        Endpoint {
            url: of_company("BASE_URL"),
            key: key.unwrap_or_else(|| panic!("no {company}_API_KEY: run `cargo xtask live`")),
            model: of_company("MODEL"),
            way: way.collect(),
            patience: Patience::Usual,
        }
    }
}
