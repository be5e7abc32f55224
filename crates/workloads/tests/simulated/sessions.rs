//! Sessions need threads, which virtual cores are not.

use crate::simulated::crew;
use hotrow::{Error, Misuse, SessionOptions, TBox};
use std::cell::RefCell;

#[test]
fn a_session_is_refused_on_a_virtual_core_and_does_not_hang() {
    let engine = crate::simulated::engine("2pl-mcs");
    let number = TBox::new(&engine, 1u64);
    // In this build sessions work outside of simulations.
    let mut session = engine.begin(SessionOptions::default()).unwrap();
    session.run(|tx| number.set(tx, 2)).unwrap();
    let session = RefCell::new(session);
    let refused = crew::run(&engine, 1, 0, |_, _| {
        let used = session.borrow_mut().run(|tx| number.get(tx)).map(drop);
        [engine.begin(SessionOptions::default()).map(drop), used]
    });
    for refused in refused.into_iter().flatten() {
        assert!(matches!(refused, Err(Error::Misuse(Misuse::Unsupported(_)))), "{refused:?}");
    }
    session.into_inner().commit().unwrap();
    assert_eq!(engine.transact(|tx| number.get(tx)), Ok(2));
}
