//! Conditions that rows are filtered by: `score > 99 and day = "2026-11-20"`. A text describes a date, a time, a decimal or a
//! UUID if the column has one of these types.

use tenarc::Value;
use tenarc::archive::{Filter, col};
use tenarc::types::TypeName;
use tenarc_convert::meaning;

use crate::failure::{Failure, Result};
use crate::text::quoted;

/// Conditions may be nested this deep.
const DEPTH: usize = 64;

/// Parses a condition on a table whose columns have these types. Returns the columns in it, too.
///
/// # Errors
/// If the text is no condition. The error says at which character.
pub fn parse<'t>(text: &'t str, types: &[(String, TypeName)]) -> Result<(Filter, Vec<&'t str>)> {
    let mut parser = Parser { text, types, start: 0, end: 0, depth: 0, columns: Vec::new() };
    let filter = parser.any_of()?;
    match parser.next()? {
        Token::End => Ok((filter, parser.columns)),
        _ => Err(parser.expected("and, or, or the end")),
    }
}

/// What a condition consists of.
#[derive(Clone, Debug, PartialEq)]
enum Token<'t> {
    /// A column or a keyword.
    Word(&'t str),
    /// A column in backquotes.
    Name(&'t str),
    Value(Value),
    Symbol(&'static str),
    End,
}

impl Token<'_> {
    fn is(&self, keyword: &str) -> bool {
        matches!(self, Self::Word(word) if word.eq_ignore_ascii_case(keyword))
    }
}

/// Longer ones come first.
const SYMBOLS: [&str; 11] = ["!=", "<>", "<=", ">=", "==", "=", "<", ">", "(", ")", ","];

const KEYWORDS: [&str; 10] =
    ["and", "or", "not", "in", "is", "null", "true", "false", "contains", "starts_with"];

struct Parser<'t, 'a> {
    text: &'t str,
    types: &'a [(String, TypeName)],
    /// The place of the last token.
    start: usize,
    end: usize,
    depth: usize,
    columns: Vec<&'t str>,
}

impl<'t> Parser<'t, '_> {
    fn any_of(&mut self) -> Result<Filter> {
        let mut filter = self.all_of()?;
        while self.takes("or")? {
            filter = filter.or(self.all_of()?);
        }
        Ok(filter)
    }

    fn all_of(&mut self) -> Result<Filter> {
        let mut filter = self.one()?;
        while self.takes("and")? {
            filter = filter.and(self.one()?);
        }
        Ok(filter)
    }

    /// A condition that is not joined with others, unless they are in parentheses.
    fn one(&mut self) -> Result<Filter> {
        self.depth += 1;
        let filter = match self.next()? {
            _ if self.depth > DEPTH => {
                Err(self.failure(&format!("more than {DEPTH} conditions are inside each other")))
            }
            Token::Symbol("(") => {
                let filter = self.any_of()?;
                self.symbol(")")?;
                Ok(filter)
            }
            token if token.is("not") => self.one().map(|filter| !filter),
            Token::Name(name) => self.test(name),
            Token::Word(word) if !KEYWORDS.iter().any(|keyword| Token::Word(word).is(keyword)) => {
                self.test(word)
            }
            _ => Err(self.expected("a column, not, or (")),
        };
        self.depth -= 1;
        filter
    }

    /// What follows a column.
    fn test(&mut self, column: &'t str) -> Result<Filter> {
        self.columns.push(column);
        let col = col(column);
        Ok(match self.next()? {
            Token::Symbol("=" | "==") => col.eq(self.value()?),
            Token::Symbol("!=" | "<>") => col.ne(self.value()?),
            Token::Symbol("<") => col.lt(self.value()?),
            Token::Symbol("<=") => col.lt_eq(self.value()?),
            Token::Symbol(">") => col.gt(self.value()?),
            Token::Symbol(">=") => col.gt_eq(self.value()?),
            token if token.is("contains") => col.contains(self.string()?),
            token if token.is("starts_with") => col.starts_with(self.string()?),
            token if token.is("in") => col.is_in(self.values()?),
            token if token.is("not") => match self.next()? {
                token if token.is("in") => !col.is_in(self.values()?),
                _ => return Err(self.expected("in")),
            },
            token if token.is("is") => {
                let is_not = self.takes("not")?;
                match self.next()? {
                    token if token.is("null") && is_not => col.is_not_null(),
                    token if token.is("null") => col.is_null(),
                    _ => return Err(self.expected("null")),
                }
            }
            _ => {
                let what = "=, !=, <, <=, >, >=, in, is null, contains or starts_with";
                return Err(self.expected(what));
            }
        })
    }

    /// What the last column is compared with.
    fn value(&mut self) -> Result<Value> {
        match self.next()? {
            Token::Value(Value::Text(text)) => self.meant(text),
            Token::Value(value) => Ok(value),
            token if token.is("true") => Ok(Value::Bool(true)),
            token if token.is("false") => Ok(Value::Bool(false)),
            token if token.is("null") => {
                Err(self.failure("nothing equals null: use is null, or is not null"))
            }
            _ => Err(self.expected("a number, a text in quotes, true or false")),
        }
    }

    /// The value that a text describes, if the last column has a type.
    fn meant(&self, text: String) -> Result<Value> {
        let column = self.columns.last().copied().unwrap_or_default();
        let of = self.types.iter().find(|(path, _)| path == column);
        let Some((_, of)) = of.filter(|(_, of)| meaning::has_texts(of.name())) else {
            return Ok(Value::Text(text));
        };
        let found = meaning::item(of.name(), &meaning::values(of.parameters()), &text);
        found.ok_or_else(|| {
            let (text, column, of) = (quoted(&text), quoted(column), quoted(of.name()));
            self.failure(&format!(
                "{text} is no value of the column {column}, which has the type {of}"
            ))
        })
    }

    fn string(&mut self) -> Result<String> {
        match self.next()? {
            Token::Value(Value::Text(text)) => Ok(text),
            _ => Err(self.expected("a text in quotes")),
        }
    }

    /// Values in parentheses.
    fn values(&mut self) -> Result<Vec<Value>> {
        self.symbol("(")?;
        let mut values = vec![self.value()?];
        loop {
            match self.next()? {
                Token::Symbol(",") => values.push(self.value()?),
                Token::Symbol(")") => return Ok(values),
                _ => return Err(self.expected(", or )")),
            }
        }
    }

    fn symbol(&mut self, symbol: &str) -> Result<()> {
        match self.next()? {
            Token::Symbol(found) if found == symbol => Ok(()),
            _ => Err(self.expected(symbol)),
        }
    }

    /// Passes over a keyword, if it is next.
    fn takes(&mut self, keyword: &str) -> Result<bool> {
        let before = (self.start, self.end);
        let found = self.next()?.is(keyword);
        if !found {
            (self.start, self.end) = before;
        }
        Ok(found)
    }

    fn next(&mut self) -> Result<Token<'t>> {
        let rest = self.text.get(self.end..).unwrap_or_default();
        let token = rest.trim_start();
        self.start = self.text.len() - token.len();
        self.end = self.text.len();
        let Some(first) = token.chars().next() else { return Ok(Token::End) };
        if let Some(symbol) = SYMBOLS.into_iter().find(|symbol| token.starts_with(symbol)) {
            self.end = self.start + symbol.len();
            return Ok(Token::Symbol(symbol));
        }
        if let '"' | '\'' | '`' = first {
            return self.in_quotes(token, first);
        }
        let is_number = first.is_ascii_digit() || matches!(first, '-' | '+' | '.');
        let (mut is_first, mut last) = (true, first);
        let is_over = |char: char| {
            let is_sign = matches!(char, '-' | '+') && matches!(last, 'e' | 'E');
            let goes_on = match char {
                '-' | '+' if is_number => is_sign || is_first,
                '_' | '.' | '-' | '/' | '[' | ']' | ':' | '$' | '@' | '#' => true,
                char => char.is_alphanumeric(),
            };
            (is_first, last) = (false, char);
            !goes_on
        };
        let len = token.find(is_over).unwrap_or(token.len()).max(first.len_utf8());
        self.end = self.start + len;
        let word = token.get(..len).unwrap_or_default();
        if !is_number {
            return match first {
                first if first.is_alphabetic() || first == '_' || first == '/' => {
                    Ok(Token::Word(word))
                }
                _ => Err(self.failure(&format!("unexpected {}", quoted(word)))),
            };
        }
        let integer = word.parse().map(Value::Integer).ok();
        let number = integer.or_else(|| word.parse().map(Value::F64).ok());
        let refused = || format!("{} is not a number; other texts are in quotes", quoted(word));
        number.map(Token::Value).ok_or_else(|| self.failure(&refused()))
    }

    /// A text in quotes, or a column in backquotes. A quote in a text is doubled.
    fn in_quotes(&mut self, token: &'t str, quote: char) -> Result<Token<'t>> {
        let inside = token.get(1..).unwrap_or_default();
        let mut from = 0;
        loop {
            let Some(at) = inside.get(from..).and_then(|rest| rest.find(quote)) else {
                return Err(self.failure(&format!("there is no {quote} that ends this")));
            };
            let (text, rest) = inside.split_at(from + at);
            if quote != '`' && rest.get(1..).is_some_and(|rest| rest.starts_with(quote)) {
                from += at + 2;
                continue;
            }
            self.end = self.start + text.len() + 2;
            return Ok(match quote {
                '`' => Token::Name(text),
                _ => Token::Value(Value::Text(
                    text.replace(&format!("{quote}{quote}"), &quote.to_string()),
                )),
            });
        }
    }

    /// The error that something else was expected in place of the last token.
    fn expected(&self, what: &str) -> Failure {
        let found = match self.text.get(self.start..self.end) {
            None | Some("") => "the end".to_owned(),
            Some(token) => quoted(token),
        };
        self.failure(&format!("expected {what}, found {found}"))
    }

    /// An error at the last token.
    fn failure(&self, what: &str) -> Failure {
        let at = self.text.get(..self.start).unwrap_or_default().chars().count() + 1;
        Failure::new(format!("in the condition, at character {at}: {what}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_those_of_the_library() {
        for (text, filter) in [
            ("score > 99", col("score").gt(99)),
            ("score>=-1.5e-3", col("score").gt_eq(-1.5e-3)),
            ("score<.5", col("score").lt(0.5)),
            ("a.b_c <= +7", col("a.b_c").lt_eq(7)),
            ("day = '2026-11-20'", col("day").eq("2026-11-20")),
            ("day==\"it's\"", col("day").eq("it's")),
            ("day = 'it''s'", col("day").eq("it's")),
            ("day != ''", col("day").ne("")),
            ("is_new <> true", col("is_new").ne(true)),
            ("`is` = FALSE", col("is").eq(false)),
            ("`a b` IS NULL", col("a b").is_null()),
            ("x is not null", col("x").is_not_null()),
            ("x in (1, 'a',2.5)", col("x").is_in([Value::from(1), "a".into(), 2.5.into()])),
            ("x not in(1)", !col("x").is_in([1])),
            ("größe contains 'é'", col("größe").contains("é")),
            ("x starts_with 'a'", col("x").starts_with("a")),
            ("a = 1 and b = 2 and c = 3", col("a").eq(1).and(col("b").eq(2)).and(col("c").eq(3))),
            ("a = 1 or b = 2 and c = 3", col("a").eq(1).or(col("b").eq(2).and(col("c").eq(3)))),
            ("(a = 1 or b = 2) and c = 3", col("a").eq(1).or(col("b").eq(2)).and(col("c").eq(3))),
            ("not a = 1 and not (b = 2)", (!col("a").eq(1)).and(!col("b").eq(2))),
            ("not not x is null", col("x").is_null()),
            ("x = 170141183460469231731687303715884105727", col("x").eq(i128::MAX)),
        ] {
            assert_eq!(parse(text, &[]).unwrap().0, filter, "{text}");
        }
    }

    #[test]
    fn texts_are_values_of_the_types_of_columns() {
        let types = [("day".to_owned(), TypeName::date()), ("id".to_owned(), TypeName::uuid())];
        let parsed = |text| parse(text, &types).map(|(filter, _)| filter);
        let days = col("day").is_in([20_785, 20_786]);
        assert_eq!(parsed("day in ('2026-11-28', '2026-11-29')").unwrap(), days);
        assert_eq!(
            parsed("day < 7 and x = '2026-11-28'").unwrap(),
            col("day").lt(7).and(col("x").eq("2026-11-28"))
        );
        let failure = parsed("day < 'soon'").unwrap_err().to_string();
        let what = "at character 7: \"soon\" is no value of the column \"day\", which has the type \"date\"";
        assert!(failure.contains(what), "{failure}");
    }

    #[test]
    fn errors_say_where() {
        let deep = format!("{}x = 1{}", "(".repeat(70), ")".repeat(70));
        for (text, at, what) in [
            ("", 1, "expected a column, not, or (, found the end"),
            ("score >", 8, "expected a number, a text in quotes, true or false, found the end"),
            ("é > high", 5, "true or false, found \"high\""),
            ("score 99", 7, "contains or starts_with, found \"99\""),
            ("score > 99 day", 12, "expected and, or, or the end, found \"day\""),
            ("score > 99 and", 15, "expected a column, not, or (, found the end"),
            ("(score > 99", 12, "expected ), found the end"),
            ("x = 'abc", 5, "there is no ' that ends this"),
            ("x = 12ab", 5, "\"12ab\" is not a number"),
            ("x = 2026-11-20", 9, "expected and, or, or the end, found \"-11\""),
            ("x = null", 5, "use is null"),
            ("x in ()", 7, "a text in quotes, true or false, found \")\""),
            ("x in (1 2)", 9, "expected , or ), found \"2\""),
            ("x is 5", 6, "expected null, found \"5\""),
            ("x not 5", 7, "expected in, found \"5\""),
            ("x contains 5", 12, "expected a text in quotes, found \"5\""),
            ("x = 1 ; y", 7, "unexpected \";\""),
            ("% = 1", 1, "unexpected \"%\""),
            (&deep, 65, "more than 64 conditions are inside each other"),
        ] {
            let failure = parse(text, &[]).unwrap_err().to_string();
            assert!(failure.contains(&format!("at character {at}: ")), "{text}: {failure}");
            assert!(failure.contains(what), "{text}: {failure}");
        }
    }
}
