//! Jobs and their threads under decisions that are given.

use super::*;

fn job(manners: Manners) -> Option<Arc<JobCourtesy>> {
    Courtesy::new(manners).begin(&Arc::default(), Instant::now())
}

const SECOND: Duration = Duration::from_secs(1);

/// Others are short of disks.
const DISKS: Decision = Decision { rest: 500, reason: Some(Pressure::Io), cpu_is_wanted: false };

#[test]
fn without_manners_there_is_nothing_to_look_after() {
    assert!(job(Manners::Off).is_none());
}

#[test]
fn a_job_gives_away_what_it_rested_until_its_budget_is_spent() {
    let job = job(Manners::Auto).unwrap();
    // Four threads at work, so that one would take longer.
    let _threads: Vec<_> = (0..4).map(|_| job.join(true)).collect();
    let begun = job.begun;
    job.take(DISKS, SECOND, begun + SECOND);
    assert_eq!((job.rest(), job.times.gave_way(Pressure::Io)), (500, Duration::ZERO), "it begins to rest");
    job.take(DISKS, SECOND, begun + 2 * SECOND);
    assert_eq!((job.rest(), job.times.gave_way(Pressure::Io)), (500, SECOND / 2));
    let more = Decision { rest: 900, ..DISKS };
    for second in 3..100 {
        job.take(more, SECOND, begun + second * SECOND);
        let given = job.times.gave_way(Pressure::Io);
        assert!(given <= (second + 2) * SECOND / 2, "{given:?} of {second} s");
    }
    let nobody = Decision { rest: 0, reason: None, cpu_is_wanted: false };
    job.take(nobody, SECOND, begun + 200 * SECOND);
    let given = job.times.gave_way(Pressure::Io);
    job.take(nobody, SECOND, begun + 201 * SECOND);
    assert_eq!((job.rest(), job.times.gave_way(Pressure::Io)), (0, given));
}

#[test]
fn a_single_thread_does_not_rest_and_gets_its_priority_back() {
    let job = job(Manners::Auto).unwrap();
    let _thread = job.join(true);
    // Its rests count as no work.
    job.add_rest(3 * SECOND);
    job.take(Decision { cpu_is_wanted: true, ..DISKS }, SECOND, job.begun + 10 * SECOND);
    assert_eq!(job.rest(), 0);
    assert!(!job.crew.lock().has_low_priority);
}

#[test]
fn a_member_has_a_low_priority_and_then_the_one_before() {
    let before = getpriority_process(None).unwrap();
    let job = job(Manners::Auto).unwrap();
    if job.crew.lock().normal.is_none() {
        return skip::test("needs the right to raise a priority");
    }
    let member = job.join(true);
    assert_eq!(getpriority_process(None).unwrap(), before.max(LOW));
    job.crew.lock().set_priority(false);
    assert_eq!(getpriority_process(None).unwrap(), before);
    job.crew.lock().set_priority(true);
    assert_eq!(getpriority_process(None).unwrap(), before.max(LOW));
    drop(member);
    assert_eq!(getpriority_process(None).unwrap(), before);
}

#[test]
fn a_thread_that_could_not_be_started_is_started_for_the_next_backup() {
    let courtesy = Courtesy::new(Manners::Auto);
    let begun = Instant::now().checked_sub(2 * WORTH_A_THREAD).unwrap();
    let [first, second] = [(); 2].map(|()| courtesy.begin(&Arc::default(), begun).unwrap());
    courtesy.look_after(&first, thread::Builder::new().stack_size(1 << 60));
    assert!(!first.crew.lock().has_low_priority, "no thread would raise it again");
    first.works_on();
    assert!(!courtesy.is_looking.load(Ordering::SeqCst), "not for each file");
    second.works_on();
    assert!(courtesy.is_looking.load(Ordering::SeqCst));
}

#[test]
fn the_thread_runs_only_while_there_is_an_old_backup() {
    let courtesy = Courtesy::new(Manners::Auto);
    let young = courtesy.begin(&Arc::default(), Instant::now() + 60 * SECOND).unwrap();
    young.works_on();
    assert!(!courtesy.is_looking.load(Ordering::SeqCst), "the backup is young");
    drop(young);
    let job = courtesy.begin(&Arc::default(), Instant::now().checked_sub(2 * WORTH_A_THREAD).unwrap()).unwrap();
    job.works_on();
    assert!(courtesy.is_looking.load(Ordering::SeqCst));
    // The job's own thread is the last one; another one hangs.
    let sender = job.join(false);
    let _hangs = job.join(true);
    drop(sender);
    // It holds the courtesy until it has ended.
    while courtesy.is_looking.load(Ordering::SeqCst) {
        thread::yield_now();
    }
}

#[test]
fn a_thread_changes_itself_and_those_that_it_starts() {
    let nice = || getpriority_process(None).unwrap();
    let before = nice();
    let lower = (before + 3).min(19);
    let other = std::thread::spawn(move || {
        setpriority_process(None, lower).unwrap();
        (nice(), std::thread::spawn(nice).join().unwrap())
    });
    assert_eq!(other.join().unwrap(), (lower, lower));
    assert_eq!(nice(), before);
}
