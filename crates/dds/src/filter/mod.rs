//! Content filters on the values of samples (DDS 1.4 §2.2.2.3.3 and Annex B).
//!
//! An expression is compiled in three steps: [`token`] splits it into words, [`parse`] builds conditions, and [`bind`]
//! resolves members in the topic's type and converts literals and parameters. [`evaluate`] applies the result to a
//! sample; it cannot fail and allocates nothing.
//!
//! Remote readers announce expressions too, so their length and nesting depth are bounded ([`limits`](crate::limits)).

mod bind;
mod evaluate;
mod parse;
mod token;

use std::{fmt, marker::PhantomData};

use isolane_datapath::clock::monotonic_now;
use isolane_rtps::ContentFilter;
use isolane_wire::{
    builtin_data::ContentFilterProperty,
    cdr::{FieldKind, FieldPath, TopicType, view_payload},
};
use thiserror::Error;

use crate::{
    error::QosError,
    limits::{
        COMPARISON_STEPS, MAX_FILTER_BYTES, MAX_FILTER_DEPTH, PATTERN_BYTE_STEPS, PEER_COMPARISONS,
        PEER_PATTERN_BYTES,
    },
    reader::DataReader,
};
use bind::Bound;
use parse::Condition;

/// Content filter for samples of a type: an expression of the SQL subset of DDS 1.4 Annex B.
///
/// Members are compared with literals, parameters and other members by `=`, `<>`, `<`, `<=`, `>`, `>=`, `LIKE` and
/// `[NOT] BETWEEN … AND …`. Comparisons are combined by `AND`, `OR`, `NOT` and parentheses. A dot selects a nested
/// member, brackets an element. Literals are numbers, `TRUE` and `FALSE`, text and characters in single quotes, and
/// enumerators. `%0` to `%99` are parameters. In a pattern of `LIKE`, `%` matches any text and `_` any character.
/// Keywords are case-insensitive.
///
/// A comparison is false if an operand does not exist (an element after the end of a sequence) or has no order (NaN).
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

/// Reason why an expression is invalid, or does not fit the type.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FilterError {
    /// The expression exceeds the maximum length.
    #[error("a filter has at most {MAX_FILTER_BYTES} bytes, this one has {0}: leave something out")]
    TooLong(usize),
    /// Conditions are nested too deeply.
    #[error(
        "at byte {0}: conditions lie in one another more than {MAX_FILTER_DEPTH} deep: use fewer NOTs and parentheses"
    )]
    TooDeep(usize),
    /// Syntax error.
    #[error("at byte {at}: {expected} was expected, and there is {found}")]
    Unexpected {
        /// Position in bytes from the start.
        at: usize,
        /// Expected words.
        expected: &'static str,
        /// Word found.
        found: String,
    },
    /// ORDER BY is not supported.
    #[error(
        "at byte {0}: ORDER BY is not taken: samples come in the order they were received; sort what was read"
    )]
    OrderBy(usize),
    /// The type has no such member, or the member is a structure or a collection.
    #[error(
        "the type has no member `{0}` that can be compared: see its declaration for names; of a structure name a member, of a collection an element"
    )]
    UnknownMember(String),
    /// Two operands cannot be compared.
    #[error("`{left}` and `{right}` cannot be compared: {why}")]
    Incomparable {
        /// Left operand, as in the expression.
        left: String,
        /// Right operand.
        right: String,
        /// Reason.
        why: &'static str,
    },
    /// The expression uses a parameter that was not given.
    #[error("the expression asks for parameter %{asked}, and {given} were given")]
    MissingParameter {
        /// Number of the parameter in the expression.
        asked: usize,
        /// Number of parameters given.
        given: usize,
    },
    /// A comparison contains no member.
    #[error("at byte {0}: a comparison needs a member of the type on one side at least")]
    NoMember(usize),
}

impl<T: TopicType> Filter<T> {
    /// Parses an expression and binds it to the type. A parameter is replaced by its text, which needs quotes like a
    /// literal. The quotes are optional if the parameter is compared with text.
    ///
    /// # Errors
    /// The error in the expression, and its position.
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

    /// Replaces the parameters of the expression. After an error the former ones stay.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn set_parameters(&mut self, parameters: &[&str]) -> Result<(), FilterError> {
        let parameters: Vec<String> = parameters.iter().copied().map(String::from).collect();
        self.bound = bind::bind(&self.condition, &parameters, kind_of::<T>)?;
        self.parameters = parameters;
        Ok(())
    }

    /// Returns the expression.
    #[must_use]
    pub fn expression(&self) -> &str {
        &self.expression
    }

    /// Returns the parameters.
    #[must_use]
    pub fn parameters(&self) -> &[String] {
        &self.parameters
    }

    /// Returns whether a sample passes the filter.
    #[must_use]
    pub fn matches_view(&self, view: &T::View<'_>) -> bool {
        let field = |path: &str| T::field(*view, FieldPath::new(path));
        evaluate::holds(&self.bound, &field)
    }

    /// Converts the filter to the form that the RTPS participant evaluates and announces for a topic.
    pub(crate) fn into_protocol(self, topic: &str) -> ContentFilter {
        let mut parameters = heapless::Vec::new();
        let all = self.parameters.iter();
        let are_few = all
            .map(String::as_str)
            .all(|parameter| parameters.push(parameter).is_ok());
        let filter = protocol_filter::<T>(self.bound);
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

    /// Returns whether a serialised sample passes the filter; `None` if it is not of the type.
    #[must_use]
    pub fn matches_payload(&self, payload: &[u8]) -> Option<bool> {
        let view = view_payload::<T>(payload).ok()?;
        Some(self.matches_view(&view))
    }
}

/// Compiles the filter that a remote reader announces, for evaluation by a writer. Returns `None` if it is in another
/// language, does not fit the type, or could cost more than the bound per sample.
pub(crate) fn of_peer<T: TopicType>(property: &ContentFilterProperty<'_>) -> Option<ContentFilter> {
    if property.class_name != ContentFilterProperty::DDSSQL {
        return None;
    }
    let filter = Filter::<T>::new(property.expression, &property.parameters).ok()?;
    let (comparisons, pattern_bytes) = filter.bound.cost();
    let is_cheap = comparisons <= PEER_COMPARISONS && pattern_bytes <= PEER_PATTERN_BYTES;
    is_cheap.then(|| {
        let steps = comparisons * COMPARISON_STEPS + pattern_bytes * PATTERN_BYTE_STEPS;
        protocol_filter::<T>(filter.bound).taking(steps as u32)
    })
}

/// Erases the type to a function pointer, so that types with references are allowed.
fn protocol_filter<T: TopicType>(bound: Bound) -> ContentFilter {
    let passes: fn(&Bound, &[u8]) -> bool = passes::<T>;
    ContentFilter::new(move |payload| passes(&bound, payload))
}

/// Returns true for a payload that is not of the type, which the reader rejects later.
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

impl<T: TopicType> DataReader<T> {
    /// Replaces or removes the reader's content filter (DDS 1.4 §2.2.2.3.3, `set_expression_parameters`).
    ///
    /// The filter is announced and applies to samples received from now on. Cached samples stay, and samples that a
    /// writer did not send because of the former filter are not sent later.
    ///
    /// ```
    /// use std::time::Duration;
    /// use isolane::{Filter, Network, Participant, Qos, TopicType};
    ///
    /// #[derive(TopicType)]
    /// struct Reading { celsius: f32 }
    ///
    /// let network = Network::new(1);
    /// let participant = Participant::builder(0).memory(&network, [10, 0, 0, 1]).build()?;
    /// let qos = Qos::reliable().keep_all();
    /// let writer = participant.create_writer::<Reading>("Readings", &qos)?;
    /// let warmer_than = |celsius: &str| Filter::new("celsius > %0", &[celsius]);
    /// let reader = participant.create_filtered_reader::<Reading>("Readings", &qos, warmer_than("90")?)?;
    /// writer.write(&Reading { celsius: 50.0 })?;
    /// assert!(participant.run_until(Duration::from_secs(5), || writer.all_acknowledged()));
    /// reader.set_filter(Some(warmer_than("40")?))?;
    /// writer.write(&Reading { celsius: 51.0 })?;
    /// assert!(participant.run_until(Duration::from_secs(5), || reader.available() == 1));
    /// assert_eq!(reader.take()?.and_then(|warm| warm.value).map(|warm| warm.celsius), Some(51.0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`QosError`] if the filter cannot be announced now; the former filter stays then.
    pub fn set_filter(&self, filter: Option<Filter<T>>) -> Result<(), QosError> {
        let filter = filter.map(|filter| filter.into_protocol(&self.topic));
        let mut state = self.core.state.borrow_mut();
        let protocol = &mut state.protocol;
        protocol.set_reader_filter(monotonic_now(), self.id, filter)?;
        Ok(())
    }
}
