//! Content filters: which samples a reader wants, by their values (DDS 1.4 §2.2.2.3.3 and Annex B).
//!
//! An expression is read in three steps: [`token`] cuts it into words, [`parse`] makes conditions of them, and
//! [`bind`] looks up the members in the topic's type and turns literals and parameters into values of theirs.
//! What is left to do for a sample ([`evaluate`]) cannot fail and allocates nothing.
//!
//! A peer's reader brings an expression too, so reading one is bounded: in bytes, and in how deep conditions
//! lie in one another ([`limits`](crate::limits)).

mod bind;
mod evaluate;
mod parse;
mod token;

use std::{fmt, marker::PhantomData};

use isolane_engine::ContentFilter;
use isolane_wire::{
    cdr::{FieldKind, FieldPath, TopicType, view_payload},
    discovery::ContentFilterProperty,
};
use thiserror::Error;

use crate::limits::{
    COMPARISON_STEPS, MAX_FILTER_BYTES, MAX_FILTER_DEPTH, PATTERN_BYTE_STEPS, PEER_COMPARISONS,
    PEER_PATTERN_BYTES,
};
use bind::Bound;
use parse::Condition;

/// A filter for the samples of a type: an expression of DDS's subset of SQL (DDS 1.4 Annex B).
///
/// Members are compared with literals, parameters and one another by `=`, `<>`, `<`, `<=`, `>`, `>=`, `LIKE` and
/// `[NOT] BETWEEN … AND …`, combined by `AND`, `OR`, `NOT` and parentheses. Members of members are behind dots,
/// elements in brackets. Literals are numbers, `TRUE` and `FALSE`, text and characters in single quotes, and
/// enumerators; `%0` to `%99` stand for parameters. In a pattern of `LIKE`, `%` is any text and `_` any
/// character. Words of the language may be in either case.
///
/// A comparison with what is not there (an element behind a sequence's last) or has no order (NaN) does not
/// hold.
///
/// ```
/// use isolane::{Filter, Representation, TopicType, types::{BoundedString, write_payload}};
///
/// #[derive(TopicType)]
/// struct Shape { #[topic(key)] color: BoundedString<128>, x: i32, y: i32 }
///
/// let mut filter = Filter::<Shape>::new("color = %0 AND x BETWEEN 0 AND 100", &["'RED'"])?;
/// let red = Shape { color: "RED".try_into()?, x: 7, y: 200 };
/// let mut payload = [0; 64];
/// let length = write_payload(&red, Representation::Xcdr1, &mut payload)?;
/// assert_eq!(filter.matches_payload(&payload[..length]), Some(true));
/// filter.set_parameters(&["'BLUE'"])?;
/// assert_eq!(filter.matches_payload(&payload[..length]), Some(false));
///
/// let unknown = Filter::<Shape>::new("colour = 'RED'", &[]).unwrap_err();
/// assert!(unknown.to_string().contains("`colour`"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Filter<T> {
    expression: String,
    parameters: Vec<String>,
    condition: Condition,
    bound: Bound,
    of: PhantomData<fn(T)>,
}

/// Why an expression is none, or none for the type.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FilterError {
    /// It is longer than is read.
    #[error("a filter has at most {MAX_FILTER_BYTES} bytes, this one has {0}: leave something out")]
    TooLong(usize),
    /// Conditions lie in one another deeper than is read.
    #[error(
        "at byte {0}: conditions lie in one another more than {MAX_FILTER_DEPTH} deep: use fewer NOTs and parentheses"
    )]
    TooDeep(usize),
    /// Something cannot stand where it stands.
    #[error("at byte {at}: {expected} was expected, and there is {found}")]
    Unexpected {
        /// Where, in bytes from the beginning.
        at: usize,
        /// What may stand there.
        expected: &'static str,
        /// What stands there.
        found: String,
    },
    /// Samples are not put in order.
    #[error(
        "at byte {0}: ORDER BY is not taken: samples come in the order they were received; sort what was read"
    )]
    OrderBy(usize),
    /// The type has no such member, or it is a structure or a collection.
    #[error(
        "the type has no member `{0}` that can be compared: see its declaration for names; of a structure name a member, of a collection an element"
    )]
    UnknownMember(String),
    /// Two things that have no order among each other.
    #[error("`{left}` and `{right}` cannot be compared: {why}")]
    Incomparable {
        /// The left side, as in the expression.
        left: String,
        /// The right side.
        right: String,
        /// What is the matter.
        why: &'static str,
    },
    /// There are fewer parameters than the expression asks for.
    #[error("the expression asks for parameter %{asked}, and {given} were given")]
    MissingParameter {
        /// The number in the expression.
        asked: usize,
        /// How many there are.
        given: usize,
    },
    /// A comparison has no member in it.
    #[error("at byte {0}: a comparison needs a member of the type on one side at least")]
    NoMember(usize),
}

impl<T: TopicType> Filter<T> {
    /// Reads an expression and binds it to the type. A parameter stands for its text, as if that stood in the
    /// expression: text in quotes. Where a text is compared, quotes may be left out.
    ///
    /// # Errors
    /// What is wrong with the expression, and where.
    pub fn new(expression: &str, parameters: &[&str]) -> Result<Self, FilterError> {
        let condition = parse::parse(expression)?;
        let parameters: Vec<String> = parameters.iter().copied().map(String::from).collect();
        let bound = bind::bind(&condition, &parameters, kind_of::<T>)?;
        Ok(Self {
            expression: expression.into(),
            parameters,
            condition,
            bound,
            of: PhantomData,
        })
    }

    /// Other parameters for the same expression. After an error the former ones hold.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn set_parameters(&mut self, parameters: &[&str]) -> Result<(), FilterError> {
        let parameters: Vec<String> = parameters.iter().copied().map(String::from).collect();
        self.bound = bind::bind(&self.condition, &parameters, kind_of::<T>)?;
        self.parameters = parameters;
        Ok(())
    }

    /// The expression it was made of.
    #[must_use]
    pub fn expression(&self) -> &str {
        &self.expression
    }

    /// The parameters.
    #[must_use]
    pub fn parameters(&self) -> &[String] {
        &self.parameters
    }

    /// Whether it lets a sample through.
    #[must_use]
    pub fn matches_view(&self, view: &T::View<'_>) -> bool {
        let field = |path: &str| T::field(*view, FieldPath::new(path));
        evaluate::holds(&self.bound, &field)
    }

    /// The filter as the engine asks it, and announces it for a topic.
    pub(crate) fn into_engine(self, topic: &str) -> ContentFilter {
        let mut parameters = heapless::Vec::new();
        let all = self.parameters.iter();
        let are_few = all
            .map(String::as_str)
            .all(|parameter| parameters.push(parameter).is_ok());
        let filter = engine_filter::<T>(self.bound);
        if !are_few {
            return filter;
        }
        filter.announced(&ContentFilterProperty {
            filtered_topic_name: topic,
            related_topic_name: topic,
            class_name: ContentFilterProperty::DDSSQL,
            expression: &self.expression,
            parameters,
        })
    }

    /// Whether it lets a serialised sample through; `None`: that is not of the type.
    #[must_use]
    pub fn matches_payload(&self, payload: &[u8]) -> Option<bool> {
        let view = view_payload::<T>(payload).ok()?;
        Some(self.matches_view(&view))
    }
}

/// The filter that a peer's reader announces, for a writer to ask before it sends; `None`: it is of another
/// language, or none for the type, or could cost more than a writer spends on a sample.
pub(crate) fn of_peer<T: TopicType>(property: &ContentFilterProperty<'_>) -> Option<ContentFilter> {
    if property.class_name != ContentFilterProperty::DDSSQL {
        return None;
    }
    let filter = Filter::<T>::new(property.expression, &property.parameters).ok()?;
    let (comparisons, pattern_bytes) = filter.bound.cost();
    let is_cheap = comparisons <= PEER_COMPARISONS && pattern_bytes <= PEER_PATTERN_BYTES;
    is_cheap.then(|| {
        let steps = comparisons * COMPARISON_STEPS + pattern_bytes * PATTERN_BYTE_STEPS;
        engine_filter::<T>(filter.bound).taking(steps as u32)
    })
}

/// Of the type only a function is left, so it may have references.
fn engine_filter<T: TopicType>(bound: Bound) -> ContentFilter {
    let passes: fn(&Bound, &[u8]) -> bool = passes::<T>;
    ContentFilter::new(move |payload| passes(&bound, payload))
}

/// What is not of the type passes: it is rejected elsewhere.
fn passes<T: TopicType>(bound: &Bound, payload: &[u8]) -> bool {
    let Ok(view) = view_payload::<T>(payload) else {
        return true;
    };
    let field = |path: &str| T::field(view, FieldPath::new(path));
    evaluate::holds(bound, &field)
}

fn kind_of<T: TopicType>(path: &str) -> Option<FieldKind> {
    T::field_kind(FieldPath::new(path))
}

impl<T> fmt::Debug for Filter<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Filter")
            .field("expression", &self.expression)
            .field("parameters", &self.parameters)
            .finish_non_exhaustive()
    }
}
