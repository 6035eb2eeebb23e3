//! A count under bounds: one update whose condition holds the bounds.

use annex_core::limits::COUNTER_MAX;
use annex_core::ports::{Count, Counted, Outage, Write};
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::{ReturnValue, ReturnValuesOnConditionCheckFailure as OnFailure};

use super::DynamoStore;
use super::commit::new_writer;
use super::item::{Stored, counter, n};
use super::plan::{Action, Basis, Now, Request, applied, request};
use super::request::{Answer, Doubt, one};
use crate::backoff::{ATTEMPTS_MAX, pause};

/// How an attempt ended: in an answer, or with what was in its way.
type Tried = Result<Counted, Answer>;

impl DynamoStore {
    /// Adds where every counter is under its bound: one request, done or refused, unless what stands there has expired or
    /// a counter is near its limit, which takes one more.
    ///
    /// The SDK sends a request again where its answer was lost on the way. That the lost one had taken effect is known by
    /// its writer, as long as nobody counted in between; then it is counted twice, which lets fewer through, never more.
    pub(super) async fn count_under(&self, count: &Count) -> Result<Counted, Outage> {
        let (tally, writer) = (count.tally(), new_writer()?);
        let mut basis = Basis::Unknown;
        let mut last = String::new();
        for failed in 0..ATTEMPTS_MAX {
            if 1 < failed {
                pause(failed).await;
            }
            let now = Now { at: self.clock.now(), writer };
            let tried = match (request(&tally, &basis, now), &basis) {
                (Some(request), Basis::Unknown) => self.update(bounded(request, count)).await?,
                (_, Basis::Seen(seen)) => self.replace(count, &tally, seen.clone(), now).await?,
                (None, Basis::Unknown) => {
                    let seen = self.read_stored(&count.key).await?;
                    self.replace(count, &tally, seen, now).await?
                }
            };
            let found = match tried {
                Ok(counted) => return Ok(counted),
                Err(Answer::Refused(mut refused)) => refused.pop().and_then(|(_, found)| found),
                Err(Answer::Busy(text)) => {
                    last = text;
                    if failed == 0 {
                        pause(1).await;
                    }
                    continue;
                }
                Err(Answer::Done) => unreachable!("what is done is counted"),
            };
            let found = found.map(Stored::read).transpose()?;
            if let Some(ours) = found.as_ref().filter(|found| found.writer == Some(writer)) {
                return Ok(Counted::Done(ours.item.counters.clone()));
            }
            if let Some(refused) = refusal(count, found.as_ref(), now) {
                return Ok(refused);
            }
            // An update sees for itself what stands there; only what it cannot do rests on what was seen, and on nobody
            // being faster.
            basis = match basis {
                Basis::Unknown => Basis::Seen(found),
                Basis::Seen(_) => Basis::Unknown,
            };
            last = "other writers were faster".to_owned();
        }
        Err(Outage::new(format!("an item cannot be counted after {ATTEMPTS_MAX} attempts: {last}")))
    }

    /// Replaces what was seen, if its counters are under their bounds and it still stands there.
    async fn replace(
        &self,
        count: &Count,
        tally: &Write,
        seen: Option<Stored>,
        now: Now,
    ) -> Result<Tried, Outage> {
        if let Some(refused) = refusal(count, seen.as_ref(), now) {
            return Ok(Ok(refused));
        }
        let after = applied(tally, seen.as_ref(), now.at).counters;
        let request = request(tally, &Basis::Seen(seen), now).expect("what was seen says it all");
        match self.send_one(request, &Doubt::default()).await? {
            Answer::Done => Ok(Ok(Counted::Done(after))),
            answer => Ok(Err(answer)),
        }
    }

    async fn update(&self, request: Request) -> Result<Tried, Outage> {
        let Action::Update(key, update) = request.action else {
            unreachable!("a tally of what was not seen is an update")
        };
        let operation = self.client.update_item().table_name(&self.table).set_key(Some(key));
        let sent = operation
            .update_expression(update)
            .set_condition_expression(request.condition)
            .set_expression_attribute_names(Some(request.names))
            .set_expression_attribute_values(Some(request.values))
            .return_values(ReturnValue::AllNew)
            .return_values_on_condition_check_failure(OnFailure::AllOld)
            .send()
            .await;
        let new = sent.as_ref().ok().and_then(|output| output.attributes.clone());
        let answer = one("an item cannot be counted", sent, |error| match error {
            UpdateItemError::ConditionalCheckFailedException(error) => Some(error),
            _ => None,
        })?;
        match (answer, new) {
            (Answer::Done, Some(new)) => Ok(Ok(Counted::Done(Stored::read(new)?.item.counters))),
            (Answer::Done, None) => {
                Err(Outage::new("an item was counted, and its counters did not come back"))
            }
            (answer, _) => Ok(Err(answer)),
        }
    }
}

/// The refusal where a counter of what stands there has reached its bound; what has expired has no counters.
fn refusal(count: &Count, found: Option<&Stored>, now: Now) -> Option<Counted> {
    let live = found.and_then(|found| found.live(now.at));
    let counters = live.map(|item| item.counters.clone()).unwrap_or_default();
    (!count.fits(&counters)).then_some(Counted::Refused(counters))
}

/// The update of a tally, with its bounds as conditions.
fn bounded(mut request: Request, count: &Count) -> Request {
    let mut condition = request.condition.unwrap_or_default();
    for (index, (counter_name, bound)) in count.below.iter().enumerate() {
        // No counter gets there, and the number has more digits than DynamoDB keeps.
        if COUNTER_MAX < *bound {
            continue;
        }
        let (name, value) = (format!("#b{index}"), format!(":b{index}"));
        condition.push_str(&match 0 < *bound {
            true => format!(" AND (attribute_not_exists({name}) OR {name} < {value})"),
            false => format!(" AND {name} < {value}"),
        });
        request.names.insert(name, counter(counter_name));
        request.values.insert(value, n(bound.max(&-COUNTER_MAX)));
    }
    Request { condition: Some(condition), ..request }
}

#[cfg(test)]
mod tests {
    use super::*;
    use annex_core::limits::COUNT_COUNTERS_MAX;
    use annex_core::ports::Key;
    use annex_core::time::Timestamp;

    const NOW: Now = Now { at: Timestamp::from_secs(1_700_000_000), writer: [3; 8] };

    fn largest() -> Request {
        let counters = |letter: &str| {
            (0..COUNT_COUNTERS_MAX).map(|n| (format!("{letter}{n}"), 1)).collect::<Vec<_>>()
        };
        let count = Count {
            key: Key::new("p", "s"),
            data: Vec::new(),
            add: counters("a"),
            below: counters("b"),
            expires_at: Some(Timestamp::from_secs(1)),
        };
        let tally = request(&count.tally(), &Basis::Unknown, NOW).unwrap();
        bounded(tally, &count)
    }

    #[test]
    fn the_largest_count_fits_the_limits_of_expressions() {
        let Request { action, condition, names, values } = largest();
        let (Action::Update(_, update), Some(condition)) = (action, condition) else {
            panic!("it is an update under a condition")
        };
        assert!(update.len() <= 4_096 && condition.len() <= 4_096, "{}", condition.len());
        let is_operator = |word: &&str| ["AND", "OR", "BETWEEN", "<>", "<", ">"].contains(word);
        let functions = condition.matches("attribute_").count();
        assert!(condition.split(' ').filter(is_operator).count() + functions <= 300);
        // Every placeholder is used: DynamoDB refuses one that is not.
        let words = [update.as_str(), " ", &condition].concat().replace(['(', ')', ','], " ");
        let words: Vec<&str> = words.split_whitespace().collect();
        assert!(names.keys().chain(values.keys()).all(|it| words.contains(&it.as_str())));
    }
}
