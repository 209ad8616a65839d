//! Numbers of cores and ports in the kernel's formats: lists (`0-2,6`) and masks (`0000000f`).

/// Formats ascending numbers as a kernel list, `0-2,6`.
pub(crate) fn list(numbers: &[u16]) -> String {
    let mut ranges: Vec<(u16, u16)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*number) => *last = *number,
            _ => ranges.push((*number, *number)),
        }
    }
    range_list(&ranges)
}

/// Formats ranges as a kernel list.
pub(crate) fn range_list(ranges: &[(u16, u16)]) -> String {
    let range = |(first, last): &(u16, u16)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.iter().map(range).collect::<Vec<_>>().join(",")
}

/// Parses a kernel list of numbers, `0-3,6`.
pub(crate) fn number_list(text: &str) -> Vec<u16> {
    ranges(text)
        .into_iter()
        .flat_map(|(first, last)| first..=last)
        .collect()
}

/// Parses a kernel list into its ranges.
pub(crate) fn ranges(text: &str) -> Vec<(u16, u16)> {
    let part = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some((first.trim().parse().ok()?, last.trim().parse().ok()?))
    };
    text.split(',').filter_map(part).collect()
}

/// Parses a mask into ascending cores; `None` if `mask` is not hexadecimal.
pub(crate) fn cores_of_mask(mask: &str) -> Option<Vec<u16>> {
    let digits: Vec<u32> = mask
        .chars()
        .rev()
        .filter(|digit| *digit != ',')
        .map(|digit| digit.to_digit(16))
        .collect::<Option<_>>()?;
    let bits = digits.iter().zip(0_u16..).flat_map(|(digit, place)| {
        (0..4).filter_map(move |bit| (digit & (1 << bit) != 0).then_some(place * 4 + bit))
    });
    Some(bits.collect())
}

/// Formats cores as a mask with the length and commas of `like`, so that it reads back as the same text.
pub(crate) fn mask_like(like: &str, cores: &[u16]) -> String {
    let set = |digit: usize| {
        let bits = (0..4).filter(|bit| {
            let core = u16::try_from(digit * 4 + bit);
            core.is_ok_and(|core| cores.contains(&core))
        });
        bits.fold(0_u32, |digit, bit| digit | 1 << bit)
    };
    let count = like.chars().filter(|digit| *digit != ',').count();
    let mut digits = (0..count).rev();
    let digit = |letter: char| match letter {
        ',' => ',',
        _ => digits
            .next()
            .and_then(|place| char::from_digit(set(place), 16))
            .unwrap_or('0'),
    };
    like.chars().map(digit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_listed_as_ranges() {
        assert_eq!(list(&[0, 1, 2, 6]), "0-2,6");
        assert_eq!(list(&[]), "");
    }

    #[test]
    fn a_mask_keeps_its_length_and_its_commas() {
        assert_eq!(mask_like("f", &[0, 1]), "3");
        assert_eq!(
            mask_like("ffffffff,ffffffff", &[0, 33]),
            "00000002,00000001"
        );
        assert_eq!(cores_of_mask("00000002,00000001"), Some(vec![0, 33]));
        assert_eq!(cores_of_mask("0f"), Some(vec![0, 1, 2, 3]));
        assert_eq!(cores_of_mask("x"), None);
    }

    #[test]
    fn lists_of_the_kernel_are_numbers_and_ranges() {
        assert_eq!(number_list("0-2,6"), [0, 1, 2, 6]);
        assert_eq!(number_list(""), [0_u16; 0]);
        assert_eq!(number_list("(null)"), [0_u16; 0]);
        assert_eq!(ranges("8000-8002,9000"), [(8000, 8002), (9000, 9000)]);
        assert_eq!(number_list("9-3"), [0_u16; 0], "backwards is nothing");
    }
}
