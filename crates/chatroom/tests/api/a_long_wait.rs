//! Tests that wait for real clocks, leases of killed nodes above all, and take next to no processor
//! time. Tests begin in the order of their names: these wait while the others work.

use crate::{
    fanout::sigkill_between_call_and_answer_loses_nothing_and_doubles_nothing,
    harness::{both_engines, one_engine},
    webhooks::outgoing::every_event_is_delivered_in_order_over_kills,
    welcome::the_guide_alone_leads_through_the_checklist,
};

both_engines![
    sigkill_between_call_and_answer_loses_nothing_and_doubles_nothing,
    every_event_is_delivered_in_order_over_kills,
];
one_engine![the_guide_alone_leads_through_the_checklist];
