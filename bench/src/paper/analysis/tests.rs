//! Tests of the numbers.

use super::*;
use crate::paper::plan::tests::plan;
use crate::sample::tests::sample;

fn made(plan: &Plan) -> Vec<Data> {
    let cell = plan.phase[0].family[0].cells().unwrap()[0];
    let mut samples = Vec::new();
    for replica in 1..=40 {
        let more = f64::from(replica);
        samples.push(Sample { cell, connection: 1000.0 + more, ..sample(Side::Stock, replica) });
        samples.push(Sample { cell, connection: 300.0 + more, ..sample(Side::Ours, replica) });
    }
    samples.push(Sample { cell, outcome: 'E', connection: 1.0, ..sample(Side::Ours, 41) });
    let data = Data { host: "here".to_owned(), samples };
    [data].into_iter().chain(plan.phase.iter().skip(1).map(|_| Data::default())).collect()
}

fn all_of(plan: &Plan, data: &[Data]) -> Numbers {
    numbers(plan, data, &measured(plan, data).unwrap()).unwrap()
}

#[test]
fn a_cell_has_all_its_numbers_and_bad_jobs_are_counted_but_no_times() {
    let plan = plan();
    let numbers = all_of(&plan, &made(&plan));
    let cell = key(&plan.phase[0], plan.phase[0].family[0].cells().unwrap()[0]);
    let get = |name: &str| numbers[&format!("{cell}.{name}")].as_str();
    assert_eq!((get("n"), get("time.stock.median"), get("time.ours.median")), ("40", "1020.5", "320.5"));
    assert_eq!((get("time.ratio"), get("time.delta")), ("0.314", "-1.000"));
    assert!(get("time.p90.ratio.high").parse::<f64>().unwrap() < 1.0);
    assert_eq!(get("time.sign"), "1.8e-12");
    assert_eq!((numbers["nine.jobs"].as_str(), numbers["nine.jobs.bad"].as_str()), ("81", "1"));
    assert_eq!((get("bad.ours"), get("bad.stock")), ("1", "0"));
    assert_eq!(numbers["nine.backups.time.geometric"], UNKNOWN);
}

#[test]
fn a_mechanism_is_worth_what_its_ratio_is_of_that_of_the_same_job_with_it() {
    let plan = plan();
    let at = plan.phase.iter().position(|one| one.name == "circumstances").unwrap();
    let cell = plan.phase[at].family[0].cells().unwrap()[0];
    let mut data = made(&plan);
    data[0].samples.iter_mut().for_each(|one| one.cell = plain_of(cell).unwrap());
    data[at].samples = data[0].samples.iter().map(|one| Sample { cell, ..one.clone() }).collect();
    for one in data[at].samples.iter_mut().filter(|one| one.side == Side::Ours) {
        one.connection *= 2.0;
    }
    let numbers = all_of(&plan, &data);
    let name = format!("{}.time.contrast", key(&plan.phase[at], cell));
    let get = |end: &str| numbers[&format!("{name}{end}")].parse::<f64>().unwrap();
    assert!((get("") - 2.0).abs() < 1e-9 && get(".low") < 2.0 && get(".high") > 2.0, "{}", get(".low"));
}

#[test]
fn what_is_saved_is_compared_with_what_is_saved_where_packets_are_acknowledged_at_once() {
    let plan = plan();
    let at = plan.phase.iter().position(|one| one.acknowledged).unwrap();
    let mut data = made(&plan);
    let samples = data[0].samples.clone();
    data[at].samples = samples;
    for one in data[at].samples.iter_mut().filter(|one| one.side == Side::Stock) {
        one.connection -= 525.0;
    }
    let numbers = all_of(&plan, &data);
    let name = format!("{}.share", key(&plan.phase[at], data[at].samples[0].cell));
    let get = |end: &str| numbers[&format!("{name}{end}")].as_str();
    assert_eq!((get(".default"), get(".acknowledged"), get("")), ("700", "175", "0.75"));
    assert!(get(".low") <= get("") && get(".high") >= get(""), "{}", get(".low"));
}

#[test]
fn with_equal_waits_the_ratio_of_jobs_is_nearer_to_one() {
    let plan = plan();
    let samples: Vec<Sample> = plan.phase[0]
        .cells()
        .unwrap()
        .into_iter()
        .flat_map(|cell| {
            let job = |side, job| Sample { cell, job: Some(job), queued: Some(100.0), ..sample(side, 1) };
            [job(Side::Stock, 1100.0), job(Side::Ours, 600.0)]
        })
        .collect();
    let mut data: Vec<_> = plan.phase.iter().map(|_| Data::default()).collect();
    data[0].samples = samples;
    let numbers = all_of(&plan, &data);
    assert_eq!(numbers["nine.backups.run.geometric"], "0.500");
    assert_eq!(numbers["nine.backups.run.evened"], "0.750");
}

#[test]
fn waits_failures_of_one_daemon_and_states_of_the_harness_are_counted() {
    let plan = plan();
    let mut data = made(&plan);
    let cell = data[0].samples[0].cell;
    for one in &mut data[0].samples {
        one.queued = Some(if one.side == Side::Stock || one.replica > 30 { 2000.0 } else { 100.0 });
        one.harness = Some(if one.replica > 20 { "111111111111" } else { "222222222222" }.to_owned());
        one.around.began = 1000 + 90 * u64::from(one.replica);
    }
    let numbers = all_of(&plan, &data);
    let get = |name: &str| numbers[name].as_str();
    assert_eq!((get("nine.queue.stock.whole"), get("nine.queue.ours.whole")), ("40", "11"));
    assert_eq!((get("nine.queue.ours.fulls"), get("sitting.harnesses")), ("41", "2"));
    assert_eq!((get("nine.harness"), get("nine.to")), ("11111111 22222222", "1.0"));
    assert_eq!(numbers[&format!("{}.bad.sign", key(&plan.phase[0], cell))], "1.000");
}

#[test]
fn phases_of_several_programs_are_refused() {
    let plan = plan();
    let mut data = made(&plan);
    data[1].samples = data[0].samples.clone();
    assert!(one_program(&data).is_ok());
    for (at, program) in ["one", "other"].into_iter().enumerate() {
        data[at].samples.iter_mut().for_each(|one| one.program = Some(program.to_owned()));
    }
    assert!(one_program(&data).unwrap_err().to_string().contains("several programs"));
}

#[test]
fn without_data_every_number_says_so_and_none_is_missing() {
    let plan = plan();
    let nothing: Vec<_> = plan.phase.iter().map(|_| Data::default()).collect();
    let (without, with) = (all_of(&plan, &nothing), all_of(&plan, &made(&plan)));
    assert!(without.keys().eq(with.keys()));
    assert!(without.values().any(|text| text == UNKNOWN) && !without.values().any(|text| text.contains("NaN")));
}
