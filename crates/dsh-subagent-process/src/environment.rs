//! The environment of a product.

use std::ffi::OsString;

/// What a deployment configures, over what is left of the program's own environment: a name with nothing removes the
/// variable, whoever set it.
pub fn overlay<'a>(
    ambient: &[(OsString, OsString)],
    configured: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
) -> Vec<(OsString, OsString)> {
    let mut env = ambient.to_vec();
    for (name, value) in configured {
        env.retain(|(other, _)| *other != *name);
        env.extend(value.map(|value| (name.into(), value.into())));
    }
    env
}
