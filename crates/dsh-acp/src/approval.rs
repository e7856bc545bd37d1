//! Asks the person at the editor whether a call may run.

use agent_client_protocol::v1::schema::{
    PermissionOption, PermissionOptionId, PermissionOptionKind, RequestPermissionOutcome,
    RequestPermissionRequest, ToolCall,
};
use async_trait::async_trait;
use dsh_llm::CallId;
use dsh_tools::{Approval, Approver, PendingCall};
use tokio::sync::watch;

use crate::card::Cards;
use crate::outbox::Outbox;

const ALLOW: &str = "allow";
const REJECT: &str = "reject";

/// The person at the editor.
pub(crate) struct AskEditor {
    pub(crate) outbox: Outbox,
    /// The cards that the editor has been shown, of calls that run.
    pub(crate) cards: watch::Receiver<Cards>,
}

impl AskEditor {
    /// The card of a call, as soon as the editor has been shown it.
    async fn card(&self, call: &CallId) -> Option<ToolCall> {
        let mut cards = self.cards.clone();
        let card_in = |cards: &Cards| {
            cards
                .iter()
                .find_map(|(id, card)| (id == call).then(|| card.clone()))
        };
        let shown = cards.wait_for(|cards| card_in(cards).is_some()).await.ok()?;
        card_in(&shown)
    }
}

#[async_trait]
impl Approver for AskEditor {
    async fn ask(&self, call: &PendingCall) -> Approval {
        let Some(card) = self.card(&call.call_id).await else {
            return Approval::Unanswered;
        };
        let option = |id: &'static str, name: &str, kind| {
            PermissionOption::new(PermissionOptionId::new(id), name, kind)
        };
        let options = vec![
            option(ALLOW, "Allow", PermissionOptionKind::AllowOnce),
            option(REJECT, "Reject", PermissionOptionKind::RejectOnce),
        ];
        let request = RequestPermissionRequest::new(self.outbox.session().clone(), card.into(), options);
        // Dropped when the call is given up; the SDK then takes the question back.
        match self.outbox.editor().send_request(request).block_task().await {
            Ok(answer) => match answer.outcome {
                RequestPermissionOutcome::Selected(chosen) if &*chosen.option_id.0 == ALLOW => {
                    Approval::Allowed
                }
                _ => Approval::Denied,
            },
            Err(error) => {
                tracing::warn!(
                    "acp: the editor does not say whether {} may run: {error}",
                    call.tool
                );
                Approval::Unanswered
            }
        }
    }
}
