//! What programs are shown: metrics, and reports in serde's data model.

mod overtaken;

use hotrow::Error;
use hotrow::metrics::Publisher;
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use overtaken::overtaken;
use std::collections::BTreeMap;

#[test]
fn counts_are_published_as_metrics() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let published = metrics::with_local_recorder(&recorder, || {
        let (db, result) = overtaken(u32::MAX);
        result.unwrap();
        let snapshot = db.snapshot().unwrap();
        let publisher = Publisher::new(&db, "shop");
        publisher.publish();
        publisher.publish();
        drop(snapshot);
        snapshotter.snapshot().into_vec()
    });
    let mut values = BTreeMap::new();
    for (key, _, _, value) in published {
        let labels: Vec<_> =
            key.key().labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        let value = match value {
            DebugValue::Counter(count) => count as f64,
            DebugValue::Gauge(value) => value.into_inner(),
            DebugValue::Histogram(_) => unreachable!("there is none"),
        };
        values.insert(format!("{}{{{}}}", key.key().name(), labels.join(",")), value);
    }
    let value = |name: &str| values.get(name).copied().unwrap_or_else(|| panic!("no {name} in {values:?}"));
    assert_eq!(value("hotrow_commits_total{database=shop,protocol=occ}"), 2.0);
    assert_eq!(value("hotrow_aborts_total{database=shop,protocol=occ,reason=read_changed}"), 1.0);
    assert_eq!(value("hotrow_aborts_total{database=shop,protocol=occ,reason=wounded}"), 0.0);
    assert_eq!(value("hotrow_attempts_max{database=shop,protocol=occ}"), 2.0);
    assert_eq!(value("hotrow_hot_key_conflicts{database=shop,object=price,key=value}"), 1.0);
    assert_eq!(value("hotrow_snapshots_open{database=shop}"), 1.0);
    assert!(value("hotrow_retained_bytes{}") >= 0.0);
}

#[test]
fn reports_can_be_serialized() {
    let (db, result) = overtaken(1);
    let Err(Error::Conflict(conflict)) = result else { panic!("{result:?}") };
    let conflict = serde_json::to_value(conflict).unwrap();
    assert!(conflict["lost_s"].as_f64().unwrap() >= 0.0);
    assert_eq!(
        (
            &conflict["reason"],
            &conflict["object"],
            &conflict["attempts"],
            &conflict["loser"],
            &conflict["winner"]
        ),
        (&"read_changed".into(), &"price".into(), &1.into(), &"audit".into(), &"buy".into())
    );
    let statistics = serde_json::to_value(db.statistics()).unwrap();
    assert_eq!((&statistics["commits"], &statistics["reasons"]["read_changed"]), (&1.into(), &1.into()));
    let hot = serde_json::to_value(db.hot_keys(1)).unwrap();
    assert_eq!(
        hot[0]["rivalries"][0],
        serde_json::json!({ "loser": "audit", "winner": "buy", "conflicts": 1 })
    );
    let snapshot = db.snapshot().unwrap();
    let open = serde_json::to_value(db.snapshots()).unwrap();
    assert!(open["open"][0]["place"].as_str().unwrap().contains("observing"), "{open}");
    drop(snapshot);
    assert!(serde_json::to_value(db.retained_memory()).unwrap()["bytes"].is_u64());
}
