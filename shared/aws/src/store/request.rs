//! Sending writes: one as a request of its own, more as a transaction.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use annex_core::ports::Outage;
use aws_sdk_dynamodb::config::interceptors::FinalizerInterceptorContextRef;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::{BoxError, ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::delete_item::DeleteItemError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::error::ConditionalCheckFailedException;
use aws_sdk_dynamodb::types::{
    CancellationReason, Delete, Put, ReturnValuesOnConditionCheckFailure as OnFailure,
    TransactWriteItem, Update,
};

use super::DynamoStore;
use super::item::Attributes;
use super::plan::{Action, Request};
use crate::outage::outage;

/// What DynamoDB answered to writes.
pub(super) enum Answer {
    /// They are done.
    Done,
    /// None is done: these conditions do not hold, of the writes at these indexes in order, for what stands there.
    Refused(Vec<(usize, Option<Attributes>)>),
    /// None is done: others were in the way.
    Busy(String),
}

/// Notes whether an attempt of a request may have taken effect without an answer, so that a later one finds what this
/// one left.
#[derive(Debug, Clone, Default)]
pub(super) struct Doubt(Arc<AtomicBool>);

impl Doubt {
    /// Whether there is any.
    pub(super) fn exists(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Intercept for Doubt {
    fn name(&self) -> &'static str {
        "Doubt"
    }

    fn read_after_attempt(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _components: &RuntimeComponents,
        _config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let is_answered =
            context.response().is_some_and(|answer| !answer.status().is_server_error());
        if !is_answered {
            self.0.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl DynamoStore {
    /// Sends one write.
    pub(super) async fn send_one(&self, request: Request, doubt: &Doubt) -> Result<Answer, Outage> {
        let names = Some(request.names).filter(|names| !names.is_empty());
        let values = Some(request.values).filter(|values| !values.is_empty());
        let on_failure = request.condition.is_some().then_some(OnFailure::AllOld);
        match request.action {
            Action::Put(item) => {
                let operation = self.client.put_item().table_name(&self.table).set_item(Some(item));
                let operation = operation
                    .set_condition_expression(request.condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .set_return_values_on_condition_check_failure(on_failure);
                let sent = operation.customize().interceptor(doubt.clone()).send().await;
                one("an item cannot be put", sent, |error| match error {
                    PutItemError::ConditionalCheckFailedException(error) => Some(error),
                    _ => None,
                })
            }
            Action::Update(key, update) => {
                let operation = self.client.update_item().table_name(&self.table);
                let operation = operation
                    .set_key(Some(key))
                    .update_expression(update)
                    .set_condition_expression(request.condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .set_return_values_on_condition_check_failure(on_failure);
                let sent = operation.customize().interceptor(doubt.clone()).send().await;
                one("an item cannot be updated", sent, |error| match error {
                    UpdateItemError::ConditionalCheckFailedException(error) => Some(error),
                    _ => None,
                })
            }
            Action::Delete(key) => {
                let operation =
                    self.client.delete_item().table_name(&self.table).set_key(Some(key));
                let operation = operation
                    .set_condition_expression(request.condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .set_return_values_on_condition_check_failure(on_failure);
                let sent = operation.customize().interceptor(doubt.clone()).send().await;
                one("an item cannot be deleted", sent, |error| match error {
                    DeleteItemError::ConditionalCheckFailedException(error) => Some(error),
                    _ => None,
                })
            }
        }
    }

    /// Sends several writes that happen together. The SDK gives them a token, so that a request which is sent again
    /// happens once.
    pub(super) async fn send_all(&self, requests: Vec<Request>) -> Result<Answer, Outage> {
        let writes = requests.into_iter().map(|request| self.transact(request)).collect();
        let operation = self.client.transact_write_items().set_transact_items(Some(writes));
        match operation.send().await {
            Ok(_) => Ok(Answer::Done),
            Err(SdkError::ServiceError(error)) => match error.err() {
                TransactWriteItemsError::TransactionCanceledException(cancelled) => {
                    cancellation(cancelled.cancellation_reasons())
                }
                TransactWriteItemsError::TransactionInProgressException(error) => {
                    Ok(Answer::Busy(error.to_string()))
                }
                _ => Err(outage("items cannot be written", SdkError::ServiceError(error))),
            },
            Err(error) => Err(outage("items cannot be written", error)),
        }
    }

    fn transact(&self, request: Request) -> TransactWriteItem {
        let names = Some(request.names).filter(|names| !names.is_empty());
        let values = Some(request.values).filter(|values| !values.is_empty());
        let on_failure = request.condition.is_some().then_some(OnFailure::AllOld);
        let write = TransactWriteItem::builder();
        const WHOLE: &str = "it has a table and a key or an item";
        match request.action {
            Action::Put(item) => write.put(
                Put::builder()
                    .table_name(&self.table)
                    .set_item(Some(item))
                    .set_condition_expression(request.condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .set_return_values_on_condition_check_failure(on_failure)
                    .build()
                    .expect(WHOLE),
            ),
            Action::Update(key, update) => write.update(
                Update::builder()
                    .table_name(&self.table)
                    .set_key(Some(key))
                    .update_expression(update)
                    .set_condition_expression(request.condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .set_return_values_on_condition_check_failure(on_failure)
                    .build()
                    .expect(WHOLE),
            ),
            Action::Delete(key) => write.delete(
                Delete::builder()
                    .table_name(&self.table)
                    .set_key(Some(key))
                    .set_condition_expression(request.condition)
                    .set_expression_attribute_names(names)
                    .set_expression_attribute_values(values)
                    .set_return_values_on_condition_check_failure(on_failure)
                    .build()
                    .expect(WHOLE),
            ),
        }
        .build()
    }
}

/// What DynamoDB answered to one write; `refused` finds the refusal of its condition in the error of the operation.
pub(super) fn one<T, E>(
    what: &str,
    sent: Result<T, SdkError<E>>,
    refused: impl Fn(&E) -> Option<&ConditionalCheckFailedException>,
) -> Result<Answer, Outage>
where
    E: ProvideErrorMetadata + Error + Send + Sync + 'static,
{
    let error = match sent {
        Ok(_) => return Ok(Answer::Done),
        Err(error) => error,
    };
    if let Some(service) = error.as_service_error() {
        if let Some(refused) = refused(service) {
            return Ok(Answer::Refused(vec![(0, refused.item.clone())]));
        }
        if service.code() == Some("TransactionConflictException") {
            return Ok(Answer::Busy(service.to_string()));
        }
    }
    Err(outage(what, error))
}

/// Why a transaction was cancelled: there is a reason for each of its writes, in order.
fn cancellation(reasons: &[CancellationReason]) -> Result<Answer, Outage> {
    let mut refused = Vec::new();
    let mut busy = None;
    for (index, reason) in reasons.iter().enumerate() {
        let text = || {
            let message = reason.message().unwrap_or_default();
            format!("write {index}: {}: {message}", reason.code().unwrap_or_default())
        };
        match reason.code() {
            None | Some("None" | "") => {}
            Some("ConditionalCheckFailed") => refused.push((index, reason.item.clone())),
            Some("TransactionConflict" | "ThrottlingError" | "ProvisionedThroughputExceeded") => {
                busy = Some(text());
            }
            Some(_) => {
                return Err(Outage::new(format!("items cannot be written: {}", text())));
            }
        }
    }
    match busy {
        // Whether the condition of the one that was in the way holds is not known, and it may be the first.
        Some(text) => Ok(Answer::Busy(text)),
        None if refused.is_empty() => {
            Err(Outage::new("items cannot be written: a transaction was cancelled for no reason"))
        }
        None => Ok(Answer::Refused(refused)),
    }
}
