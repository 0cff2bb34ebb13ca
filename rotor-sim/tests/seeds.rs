//! Which seeds a check runs. The environment may ask for more of them.

use std::cell::RefCell;

use rotor_sim::Check;

#[test]
fn seeds_go_on_from_zero_after_the_greatest() {
    let seen = RefCell::new(Vec::new());
    let check = Check::new().calm().first(u64::MAX).seeds(3);
    let ran = check.run(|sim| {
        seen.borrow_mut().push(sim.seed());
        Ok(())
    });
    let seen = seen.take();
    assert_eq!((ran, &seen[..3]), (seen.len() as u64, &[u64::MAX, 0, 1][..]));
    let found = check.find(|sim| if sim.seed() == 1 { Err("found".into()) } else { Ok(()) });
    assert_eq!(found.expect("it fails").0, 1);
}
