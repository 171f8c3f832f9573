//! Filters of `DataFusion` as conditions of tenarc.
//!
//! Both compare integers, texts, bools and typed values in the same way, and treat null in the same way. Floats differ: for
//! Arrow, NaN equals itself and is greater (or, if its sign is negative, less) than all numbers, and -0.0 is less than 0.0.
//! So a condition about floats is made wider, and `DataFusion` filters the rows again.

use std::collections::HashSet;

use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::{Cast, InList, Like, ScalarFunction};
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Operator, TryCast};
use tenarc::Value;
use tenarc::archive::{Col, Filter, col};

/// A condition that is met by all rows that meet a filter.
pub struct Condition {
    pub filter: Filter,
    /// Whether no other rows meet it.
    pub is_exact: bool,
}

/// What values are compared as.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    Integer,
    Float,
    Bool,
    Text,
    Bytes,
    /// Values of a type that an archive stores as integers: of the same unit, and the same time zone.
    Typed(DataType),
}

impl Kind {
    /// `None` if tenarc does not compare values of this type, or not as Arrow does.
    pub fn of(data_type: &DataType) -> Option<Self> {
        Some(match data_type {
            of if of.is_integer() => Self::Integer,
            of if of.is_floating() => Self::Float,
            DataType::Boolean => Self::Bool,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Self::Text,
            DataType::Dictionary(_, values) => match Self::of(values)? {
                Self::Text => Self::Text,
                _ => return None,
            },
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Self::Bytes,
            DataType::FixedSizeBinary(_) => Self::Bytes,
            DataType::Timestamp(..) | DataType::Date32 | DataType::Duration(_) => {
                Self::Typed(data_type.clone())
            }
            DataType::Time32(_) | DataType::Time64(_) => Self::Typed(data_type.clone()),
            // Decimals are stored as byte strings, if they are large.
            _ => return None,
        })
    }
}

/// The columns that filters are about.
pub struct Columns<'s> {
    /// The schema of the table.
    pub schema: &'s Schema,
    /// The columns that all files have.
    pub common: &'s HashSet<String>,
    /// The schema of one of its files, which can lack columns, fields of structs and variants of enums.
    pub file: Option<&'s Schema>,
}

/// A column, or a field inside of one.
struct Operand {
    column: Col,
    kind: Option<Kind>,
    /// Whether a file can lack it, so that `DataFusion` must test the condition again.
    is_optional: bool,
}

impl Columns<'_> {
    /// The condition of a filter. `None` if there is none that says more than that a row exists.
    pub fn condition(&self, filter: &Expr) -> Option<Condition> {
        self.of(filter, false)
    }

    /// The condition of a filter, or of its opposite. It is made of the opposites of its parts, because the opposite of a
    /// wider condition would lose rows.
    fn of(&self, filter: &Expr, is_opposite: bool) -> Option<Condition> {
        match filter {
            Expr::Not(inner) => self.of(inner, !is_opposite),
            Expr::BinaryExpr(BinaryExpr {
                left,
                op: op @ (Operator::And | Operator::Or),
                right,
            }) => {
                let are_all = (*op == Operator::And) != is_opposite;
                match (self.of(left, is_opposite), self.of(right, is_opposite)) {
                    (Some(one), Some(other)) => Some(Condition {
                        filter: if are_all {
                            one.filter.and(other.filter)
                        } else {
                            one.filter.or(other.filter)
                        },
                        is_exact: one.is_exact && other.is_exact,
                    }),
                    (Some(one), None) | (None, Some(one)) if are_all => {
                        Some(Condition { is_exact: false, ..one })
                    }
                    _ => None,
                }
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                self.comparison(left, *op, right, is_opposite)
            }
            Expr::Between(Between { expr, negated, low, high }) => {
                let bound =
                    |op, bound: &Expr| BinaryExpr::new(expr.clone(), op, Box::new(bound.clone()));
                let low = Expr::BinaryExpr(bound(Operator::GtEq, low));
                let high = Expr::BinaryExpr(bound(Operator::LtEq, high));
                self.of(&low.and(high), *negated != is_opposite)
            }
            Expr::InList(InList { expr, list, negated }) => {
                let operand = self.operand(expr)?;
                let values = list.iter().map(|value| operand.value(value));
                let is_float = operand.kind == Some(Kind::Float);
                let is_opposite = *negated != is_opposite;
                let values = values.collect::<Option<Vec<_>>>()?;
                if is_float && is_opposite && values.iter().any(is_zero) {
                    return None;
                }
                let is_exact = !is_float && !operand.is_optional;
                let filter = operand.column.is_in(values);
                Some(Condition { filter: if is_opposite { !filter } else { filter }, is_exact })
            }
            Expr::IsNull(column) => self.null(column, is_opposite),
            Expr::IsNotNull(column) => self.null(column, !is_opposite),
            Expr::Like(like) => self.like(like, is_opposite),
            Expr::Column(_) => {
                let operand = self.operand(filter)?;
                (operand.kind == Some(Kind::Bool)).then(|| Condition {
                    filter: operand.column.eq(!is_opposite),
                    is_exact: !operand.is_optional,
                })
            }
            _ => None,
        }
    }

    fn null(&self, column: &Expr, is_opposite: bool) -> Option<Condition> {
        let operand = self.operand(column)?;
        let filter = operand.column.is_null();
        let filter = if is_opposite { !filter } else { filter };
        Some(Condition { filter, is_exact: !operand.is_optional })
    }

    /// Texts that start with a text, or contain one.
    fn like(&self, like: &Like, is_opposite: bool) -> Option<Condition> {
        let Like { negated, expr, pattern, escape_char: None, case_insensitive: false } = like
        else {
            return None;
        };
        let operand = self.operand(expr)?;
        let Some(Value::Text(pattern)) = operand.value(pattern) else { return None };
        let start = pattern.strip_suffix('%')?;
        let (part, is_start) = match start.strip_prefix('%') {
            Some(part) => (part, false),
            None => (start, true),
        };
        if part.contains(['%', '_', '\\']) {
            return None;
        }
        let filter =
            if is_start { operand.column.starts_with(part) } else { operand.column.contains(part) };
        let filter = if *negated == is_opposite { filter } else { !filter };
        Some(Condition { filter, is_exact: !operand.is_optional })
    }

    fn comparison(
        &self,
        left: &Expr,
        op: Operator,
        right: &Expr,
        is_opposite: bool,
    ) -> Option<Condition> {
        let (column, value, op) = match left {
            Expr::Literal(..) => (right, left, op.swap()?),
            _ => (left, right, op),
        };
        let op = if is_opposite { op.negate()? } else { op };
        let operand = self.operand(column)?;
        let value = operand.value(value)?;
        let is_exact = operand.kind != Some(Kind::Float) && !operand.is_optional;
        let column = operand.column;
        let filter = if operand.kind == Some(Kind::Float) {
            wide(column, op, value)?
        } else {
            match op {
                Operator::Eq => column.eq(value),
                Operator::NotEq => column.ne(value),
                Operator::Lt => column.lt(value),
                Operator::LtEq => column.lt_eq(value),
                Operator::Gt => column.gt(value),
                Operator::GtEq => column.gt_eq(value),
                _ => return None,
            }
        };
        Some(Condition { filter, is_exact })
    }

    fn operand(&self, expr: &Expr) -> Option<Operand> {
        if let Expr::Cast(Cast { expr, field: to }) | Expr::TryCast(TryCast { expr, field: to }) =
            expr
        {
            let inner = self.operand(expr)?;
            let (_, from) = field(self.schema, expr)?;
            return keeps_values(&from, to.data_type())
                .then(|| Operand { kind: Kind::of(to.data_type()), ..inner });
        }
        let (path, data_type) = field(self.schema, expr)?;
        if let Some(file) = self.file {
            field(file, expr)?;
        }
        let is_optional = match expr {
            Expr::Column(column) => !self.common.contains(&column.name),
            _ => true,
        };
        Some(Operand { column: col(path), kind: Kind::of(&data_type), is_optional })
    }
}

/// The path in an archive of a column, or of a field inside of it, and its type.
fn field(schema: &Schema, expr: &Expr) -> Option<(String, DataType)> {
    match expr {
        Expr::Column(column) => {
            let field =
                schema.field_with_name(&column.name).ok().filter(|field| is_plain(field))?;
            Some((field.name().clone(), field.data_type().clone()))
        }
        Expr::ScalarFunction(ScalarFunction { func, args }) if func.name() == "get_field" => {
            let (base, steps) = args.split_first()?;
            let mut path = String::new();
            let mut field: Option<&Field> = None;
            let Expr::Column(column) = base else { return None };
            let steps = steps.iter().map(text).collect::<Option<Vec<_>>>()?;
            for name in std::iter::once(column.name.as_str()).chain(steps) {
                let parent = match field.map(Field::data_type) {
                    None => schema.fields(),
                    Some(DataType::Struct(fields)) => fields,
                    Some(_) => return None,
                };
                let kind = field.and_then(|field| field.metadata().get("tenarc.kind"));
                // Beside a name with a dot, a path could be that of another field.
                if !parent.iter().all(|field| is_plain(field)) {
                    return None;
                }
                let next: &Field = parent.iter().find(|field| field.name() == name)?;
                match kind.map(String::as_str) {
                    // The elements of a tuple have no paths that lead through all rows.
                    Some("tuple") => return None,
                    // The names of variants, which tenarc compares with the enum itself.
                    Some("enum") if next == parent.first()?.as_ref() => {}
                    _ if path.is_empty() => path.push_str(name),
                    _ => {
                        path.push('.');
                        path.push_str(name);
                    }
                }
                field = Some(next);
            }
            Some((path, field?.data_type().clone()))
        }
        _ => None,
    }
}

impl Operand {
    /// The value of a literal, if it is of the kind of the column, and not null.
    fn value(&self, literal: &Expr) -> Option<Value> {
        let Expr::Literal(literal, _) = literal else { return None };
        (Kind::of(&literal.data_type()) == self.kind).then(|| value(literal))?
    }
}

/// Whether a name is a step of a path as it is.
fn is_plain(field: &Field) -> bool {
    let name = field.name();
    !name.is_empty() && !name.contains(['.', '/', '~'])
}

fn text(literal: &Expr) -> Option<&str> {
    match literal {
        Expr::Literal(literal, _) => literal.try_as_str().flatten(),
        _ => None,
    }
}

/// Whether a cast changes no value that is compared.
fn keeps_values(from: &DataType, to: &DataType) -> bool {
    let bits = |of: &DataType| of.primitive_width().map_or(0, |bytes| bytes * 8);
    match (Kind::of(from), Kind::of(to)) {
        (Some(Kind::Integer), Some(Kind::Integer)) => {
            let wider = bits(to) > bits(from);
            match (from.is_signed_integer(), to.is_signed_integer()) {
                (true, false) => false,
                (false, true) => wider,
                _ => wider || from == to,
            }
        }
        // A float has at least as many bits for digits as an integer of half its size.
        (Some(Kind::Integer), Some(Kind::Float)) => bits(to) > bits(from),
        (Some(Kind::Float), Some(Kind::Float)) => bits(to) >= bits(from),
        (Some(Kind::Text), Some(Kind::Text)) => true,
        _ => false,
    }
}

fn value(literal: &ScalarValue) -> Option<Value> {
    use ScalarValue as S;
    Some(match literal {
        S::Boolean(value) => (*value)?.into(),
        S::Int8(value) => (*value)?.into(),
        S::Int16(value) => (*value)?.into(),
        S::Int32(value) | S::Date32(value) | S::Time32Second(value) => (*value)?.into(),
        S::Time32Millisecond(value) => (*value)?.into(),
        S::Int64(value) | S::Time64Microsecond(value) | S::Time64Nanosecond(value) => {
            (*value)?.into()
        }
        S::TimestampSecond(value, _)
        | S::TimestampMillisecond(value, _)
        | S::TimestampMicrosecond(value, _)
        | S::TimestampNanosecond(value, _) => (*value)?.into(),
        S::DurationSecond(value)
        | S::DurationMillisecond(value)
        | S::DurationMicrosecond(value)
        | S::DurationNanosecond(value) => (*value)?.into(),
        S::UInt8(value) => (*value)?.into(),
        S::UInt16(value) => (*value)?.into(),
        S::UInt32(value) => (*value)?.into(),
        S::UInt64(value) => (*value)?.into(),
        S::Float16(value) => float((*value)?.into())?,
        S::Float32(value) => float((*value)?.into())?,
        S::Float64(value) => float((*value)?)?,
        S::Utf8(value) | S::LargeUtf8(value) | S::Utf8View(value) => value.as_deref()?.into(),
        S::Dictionary(_, inner) => return value(inner),
        S::Binary(value) | S::LargeBinary(value) | S::BinaryView(value) => {
            Value::Bytes(value.clone()?)
        }
        S::FixedSizeBinary(_, value) => Value::Bytes(value.clone()?),
        _ => return None,
    })
}

/// `None` for NaN, which tenarc compares in another way.
fn float(value: f64) -> Option<Value> {
    (!value.is_nan()).then(|| value.into())
}

fn is_zero(value: &Value) -> bool {
    matches!(value, Value::F64(0.0))
}

/// A condition about floats that is met by NaN of either sign, by -0.0 where 0.0 meets it, and the reverse.
fn wide(column: Col, op: Operator, value: Value) -> Option<Filter> {
    let is_zero = is_zero(&value);
    Some(match op {
        Operator::Eq => column.eq(value),
        Operator::NotEq if is_zero => return None,
        Operator::NotEq => column.ne(value),
        Operator::Lt if is_zero => !column.gt(value),
        Operator::Lt => !column.gt_eq(value),
        Operator::LtEq => !column.gt(value),
        Operator::Gt if is_zero => !column.lt(value),
        Operator::Gt => !column.lt_eq(value),
        Operator::GtEq => !column.lt(value),
        _ => return None,
    })
}
