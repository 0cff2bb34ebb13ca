//! The records in any sequence of events.

use super::*;

/// Checks that the records agree with each other.
fn check(origins: &TestOrigins, case: &str) {
    let mut waits: Vec<_> = origins
        .by_name
        .iter()
        .filter_map(|(name, own)| own.blocked.map(|blocked| (blocked, *name)))
        .collect();
    waits.sort_by_key(|(blocked, _)| blocked.key);
    let keys: Vec<_> = waits.iter().map(|(blocked, name)| (blocked.key, *name)).collect();
    assert_eq!(keys, origins.blocked.clone().into_iter().collect::<Vec<_>>(), "{case}");
    let starving = waits.iter().filter(|(blocked, _)| blocked.is_starving).count();
    assert_eq!(starving, origins.blocked_starving, "{case}");
    for (name, origin) in &origins.by_name {
        let is_due = origins.due.contains(name);
        assert_eq!(is_due, origin.is_due, "{case} {name}");
        let lacks_one =
            origin.shortage() != Shortage::Nothing && origin.connections() < origins.per_origin_max;
        assert!(is_due || lacks_one == origin.blocked.is_some(), "{case} {name}");
        if let (false, Some(blocked)) = (is_due, origin.blocked) {
            assert_eq!(blocked.key.0, origin.rank(), "{case} {name}");
        }
    }
    let members: usize = origins.by_name.values().map(Origin::connections).sum();
    assert_eq!(members, origins.connections, "{case}");
}

#[test]
fn the_records_agree_after_any_sequence_of_events() {
    for seed in 0..300u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % below
        };
        let mut origins = origins(1 + random(3), 1 + random(4), 9);
        let names = ["a", "b", "h2", "h2 too"];
        let mut members: Vec<(&str, MemberId)> = Vec::new();
        // How many more requests each HTTP/2 connection takes: it asks only while there is room.
        let mut rooms: BTreeMap<MemberId, u32> = BTreeMap::new();
        for step in 0..200 {
            let case = format!("seed {seed}, step {step}");
            let name = names[random(names.len())];
            let at = if members.is_empty() { 0 } else { random(members.len()) };
            match (random(8), members.get(at).copied()) {
                (0..=2, _) => _ = origins.add(name, step, 1),
                (3, Some((name, id))) => {
                    if random(2) == 0 {
                        origins.add_repeated(name, step, 1);
                    }
                    origins.remove(&name, id);
                    members.remove(at);
                }
                (4, Some((name, id))) if name.starts_with("h2") => {
                    let room = Room { under_way: random(2) as u32, further: random(3) as u32 };
                    rooms.insert(id, room.further);
                    origins.set_room(&name, id, room, || id);
                }
                // An HTTP/2 connection takes as many as it has room for.
                (4..=6, Some((name, id))) => {
                    while rooms.get(&id) != Some(&0) {
                        match take(&mut origins, name, id) {
                            TakeResult::End => {
                                origins.remove(&name, id);
                                members.remove(at);
                            }
                            TakeResult::Job(_) if rooms.contains_key(&id) => {
                                rooms.entry(id).and_modify(|further| *further -= 1);
                                continue;
                            }
                            _ => {}
                        }
                        break;
                    }
                }
                (7, _) if random(4) == 0 => _ = origins.remove_where(|job| job % 3 == 0),
                _ => {}
            }
            check(&origins, &case);
            let mut actions = 0;
            loop {
                match origins.next_action(random(4) > 0) {
                    PoolAction::Nothing => break,
                    PoolAction::Wake(_) => {}
                    PoolAction::Connect(name, id) => members.push((name, id)),
                }
                check(&origins, &case);
                actions += 1;
                assert!(actions < 100, "{case}: without end");
            }
            check(&origins, &case);
            assert!(!origins.has_due(), "{case}");
        }
        // Everybody is served in the end.
        let mut left = 10_000;
        while origins.waiting().next().is_some() {
            while let PoolAction::Connect(name, id) = origins.next_action(true) {
                members.push((name, id));
            }
            let (name, id) = members.remove(0);
            if name.starts_with("h2") {
                origins.set_room(&name, id, Room { under_way: 0, further: 1 }, || id);
            }
            match take(&mut origins, name, id) {
                TakeResult::End => origins.remove(&name, id),
                _ => members.push((name, id)),
            }
            left -= 1;
            assert!(left > 0, "seed {seed}");
        }
    }
}
