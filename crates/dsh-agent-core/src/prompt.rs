//! What an agent is told about itself, before anything about its tools.

use dsh_system_prompt::Section;

/// Before everything else.
const IDENTITY_ORDER: i32 = -100;
/// After the identity, before the tools.
const PERSONA_ORDER: i32 = 0;

const IDENTITY: &str = "You are dsh, an agent that gets work done on the machine of the person you work for. Look at \
    the facts with your tools before you say how things are, and finish what you were asked for.";
const PLACE: &str = " You work in {{cwd}}.";

/// Where an agent works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Known,
    Unknown,
}

/// The sections of an agent that works on its own: who it is, and who the deployment wants it to be.
pub(crate) fn sections(place: Place, persona: &str) -> Vec<Section> {
    let place = match place {
        Place::Known => PLACE,
        Place::Unknown => "",
    };
    vec![
        Section::new("identity", IDENTITY_ORDER, format!("{IDENTITY}{place}")),
        Section::new("deployment:persona", PERSONA_ORDER, persona),
    ]
}
