use proptest::prelude::*;

use super::*;

fn finder(values: &[impl AsRef<str>]) -> Finder {
    let values = values.iter().enumerate();
    let values =
        values.map(|(index, text)| (format!("[{index}]").into(), vec![Arc::from(text.as_ref())]));
    Finder::new(values).expect("there are values")
}

/// Where the forms are, with their markers.
fn places(finder: &Finder, text: &str, effort: &mut Effort) -> Vec<(usize, usize, String)> {
    let mut search = finder.search(text, effort);
    let mut places = Vec::new();
    let mut from = 0;
    while let Some(hit) = search.next(from) {
        from = hit.end;
        places.push((hit.start, hit.end, hit.marker.to_owned()));
    }
    places
}

/// Both ways to search find the same. Returns whether the quick one was fast enough for the text.
#[track_caller]
fn check(values: &[impl AsRef<str> + std::fmt::Debug], text: &str) -> bool {
    let finder = finder(values);
    let quick = &mut Effort::new();
    let steady = &mut Effort { left: 0, is_steady: true };
    assert_eq!(places(&finder, text, quick), places(&finder, text, steady), "{values:?} in {text}");
    !quick.is_steady
}

#[test]
fn forms_are_found_at_every_place_and_length() {
    for length in 4..24 {
        let value: String = ('a'..).take(length).collect();
        for before in 0..40 {
            let text = format!("{}{value}{}", ".".repeat(before), ".".repeat(before % 7));
            assert_eq!(
                places(&finder(&[&value]), &text, &mut Effort::new()),
                [(before, before + length, "[0]".to_owned())]
            );
        }
    }
}

#[test]
fn text_made_to_be_slow_is_searched_the_steady_way() {
    let value = format!("{}b", "a".repeat(40));
    assert!(check(&[&value], &value.repeat(5_000)), "hits are no effort in vain");
    assert!(check(&[&value], &"x".repeat(200_000)));
    assert!(!check(&[&value], &"a".repeat(200_000)));
    let text = format!("{}{value}.{value}", "a".repeat(200_000));
    assert!(!check(&[&*value, "zzzz"], &text));
    let many: Vec<String> = (1_000..2_000).map(|index| format!("token-{index}-token")).collect();
    assert!(!check(&many, &"token-".repeat(20_000)));
}

// covers: AL-124
#[test]
fn a_marker_stays_where_a_value_stands_in_it() {
    let values = [
        ("[secret:apiKey]".into(), vec![Arc::from("secret")]),
        ("[secret:b]".into(), vec![Arc::from("apiKey"), Arc::from("b]")]),
    ];
    let finder = Finder::new(values).unwrap();
    let redact = |text: &str| finder.redact(text, &mut Effort::new());
    let once = redact("a secret apiKey").unwrap();
    assert_eq!(once, "a [secret:apiKey] [secret:b]");
    assert_eq!(redact(&once).unwrap(), once);
}

proptest! {
    #[test]
    fn both_searches_find_the_same_in_texts_of_few_letters(
        values in prop::collection::vec("[ab]{4,20}", 1..6), text in "[abc]{0,300}",
    ) {
        check(&values, &text);
    }

    #[test]
    fn both_searches_find_the_same_in_any_text(
        values in prop::collection::vec("[a-dé😀\\[0\\]]{4,30}", 1..6),
        parts in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..40, "[a-dé 😀]{0,9}"), 0..20),
    ) {
        let mut text = String::new();
        for (index, cut, filler) in parts {
            let value = index.get(&values);
            text.push_str(&value[..value.floor_char_boundary(cut)]);
            text.push_str(&filler);
        }
        check(&values, &text);
    }

    #[test]
    fn both_searches_find_long_values_that_begin_alike(
        tails in prop::collection::vec("[ab]{0,9}", 1..5), text in "[ab]{0,12}", length in 100_usize..140,
    ) {
        let values: Vec<String> = tails.iter().map(|tail| "ab".repeat(length / 2) + tail).collect();
        check(&values, &format!("{text}{}{text}", values[0]));
    }
}
