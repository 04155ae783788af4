//! Parents of the states of a search against a list.

use mu_base::random::Random;
use mu_murphi::parents::Parents;

/// Few and many children, few and many states between two parents.
#[test]
fn parents_equal_those_of_a_list() {
    let mut random = Random::new(1);
    for (children, initial) in [(1, 1), (3, 5), (20, 100), (10_000, 1)] {
        let (mut parents, mut list) = (Parents::default(), Vec::new());
        for _ in 0..initial {
            parents.push(None);
            list.push(None);
        }
        let mut parent = 0;
        while list.len() < 30_000 {
            for _ in 0..random.below(2 * children) {
                parents.push(Some(parent));
                list.push(Some(parent));
            }
            parent += 1;
        }
        for (number, expected) in (0u32..).zip(&list) {
            assert_eq!(parents.get(number), *expected, "{children} {initial} {number}");
        }
        let most = (list.len() + parent as usize) / 8 + 200;
        assert!(parents.memory() < most, "{} of {most} bytes", parents.memory());
    }
}
