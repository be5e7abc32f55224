//! Two schemas of one structure: the one that its rows were written with, and the program's.
//!
//! # How
//!
//! Both schemas are walked at once. Structs are compared by the names of their fields, in their order: each field of the program is the
//! next earlier field if that has its name, or one of its aliases; otherwise it is new, and has a default. Enums are compared variant by
//! variant; new ones come behind. Two types that have been compared before, or are being compared, are not compared again, so that
//! recursive types end.
//!
//! The result is a plan: how the bytes of a value of the one are made to those of the other, without a value, from the two schemas alone.

use crate::schema::Shown;
use crate::{Definition, Field, Kind, Malformed, Reader, Schema, Type, Variant, Writer};
use std::fmt;

/// The place where two schemas differ, and what is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The place: `row.price`, say.
    pub place: String,
    /// The difference in words: `i32 was u32`.
    pub words: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.words)
    }
}

impl std::error::Error for Difference {}

/// The difference of a schema from an earlier one.
#[derive(Debug, Clone)]
pub enum Change {
    /// There is none.
    None,
    /// Names, or new variants: the bytes of all earlier values are those of the same values.
    Names,
    /// Values have other bytes.
    Bytes(Plan),
}

/// The way from the bytes of an earlier type to those of the present one.
#[derive(Debug, Clone)]
pub struct Plan {
    root: Step,
    /// The structs and enums of the earlier schema with those of the present one.
    pairs: Vec<Pair>,
}

/// The use of a value.
#[derive(Debug, Clone)]
enum Step {
    Copy(Kind),
    Optional(Box<Step>),
    List(Box<Step>),
    Array(u64, Box<Step>),
    Tuple(Vec<Step>),
    /// A struct or an enum: the number of its pair.
    Pair(usize),
}

#[derive(Debug, Clone)]
enum Pair {
    Struct(Vec<FieldStep>),
    Enum(Vec<Vec<FieldStep>>),
}

#[derive(Debug, Clone)]
enum FieldStep {
    Earlier(Step),
    /// The bytes of a new field.
    Default(Vec<u8>),
}

impl Schema {
    /// Compares a schema with the earlier one of the same structure, whose place (`row`) begins the places of differences.
    ///
    /// # Errors
    ///
    /// The first [`Difference`] that is no safe change.
    pub fn change_from(&self, earlier: &Self, place: &str) -> Result<Change, Difference> {
        if self == earlier {
            return Ok(Change::None);
        }
        let (plan, changes_bytes) = Comparison::plan(earlier, self, place)?;
        Ok(if changes_bytes { Change::Bytes(plan) } else { Change::Names })
    }

    /// The plan that changes nothing, by which values are [split](Plan::split).
    pub fn plan(&self) -> Plan {
        Comparison::plan(self, self, "").expect("the same").0
    }
}

struct Comparison<'s> {
    earlier: &'s Schema,
    now: &'s Schema,
    /// The definitions that were compared, or are being compared.
    pairs: Vec<(u32, u32, Option<Pair>)>,
    changes_bytes: bool,
}

impl<'s> Comparison<'s> {
    /// The plan, and true if it changes bytes.
    fn plan(earlier: &'s Schema, now: &'s Schema, place: &str) -> Result<(Plan, bool), Difference> {
        let mut comparison = Self { earlier, now, pairs: Vec::new(), changes_bytes: false };
        let root = comparison.of_types(&earlier.root, &now.root, place)?;
        let Self { pairs, changes_bytes, .. } = comparison;
        let pairs = pairs.into_iter().map(|(_, _, pair)| pair.expect("compared by now")).collect();
        Ok((Plan { root, pairs }, changes_bytes))
    }

    fn of_types(&mut self, earlier: &Type, now: &Type, place: &str) -> Result<Step, Difference> {
        match (earlier, now) {
            (Type::Plain(earlier), Type::Plain(now)) if earlier == now => Ok(Step::Copy(*now)),
            (Type::Optional(earlier), Type::Optional(now)) => {
                Ok(Step::Optional(Box::new(self.of_types(earlier, now, place)?)))
            }
            (Type::List(earlier), Type::List(now)) => {
                Ok(Step::List(Box::new(self.of_types(earlier, now, &format!("{place}[]"))?)))
            }
            (Type::Array(length, earlier), Type::Array(now_length, now)) if length == now_length => {
                Ok(Step::Array(*length, Box::new(self.of_types(earlier, now, &format!("{place}[]"))?)))
            }
            (Type::Checked(condition, earlier), Type::Checked(now_condition, now))
                if condition == now_condition =>
            {
                self.of_types(earlier, now, place)
            }
            (Type::Map(key, value), Type::Map(now_key, now_value)) => {
                let key = self.of_types(key, now_key, &format!("{place}.key"))?;
                let value = self.of_types(value, now_value, &format!("{place}.value"))?;
                Ok(Step::List(Box::new(Step::Tuple(vec![key, value]))))
            }
            (Type::Tuple(earlier), Type::Tuple(now)) if earlier.len() == now.len() => {
                let parts = earlier.iter().zip(now).enumerate();
                let steps =
                    parts.map(|(at, (earlier, now))| self.of_types(earlier, now, &format!("{place}.{at}")));
                Ok(Step::Tuple(steps.collect::<Result<_, _>>()?))
            }
            (Type::Defined(earlier_number), Type::Defined(now_number)) => {
                let is_same = |(one, two, _): &(u32, u32, _)| (*one, *two) == (*earlier_number, *now_number);
                if let Some(pair) = self.pairs.iter().position(is_same) {
                    return Ok(Step::Pair(pair));
                }
                let (earlier_schema, now_schema) = (self.earlier, self.now);
                let pair = self.pairs.len();
                self.pairs.push((*earlier_number, *now_number, None));
                let definitions = (
                    &earlier_schema.definitions[*earlier_number as usize],
                    &now_schema.definitions[*now_number as usize],
                );
                let compared = match definitions {
                    (Definition::Struct(earlier), Definition::Struct(now)) => {
                        Pair::Struct(self.of_fields(earlier, now, place)?)
                    }
                    (Definition::Enum(earlier), Definition::Enum(now)) => {
                        Pair::Enum(self.of_variants(earlier, now, place)?)
                    }
                    _ => return Err(self.other_types(earlier, now, place)),
                };
                self.pairs[pair].2 = Some(compared);
                Ok(Step::Pair(pair))
            }
            _ => Err(self.other_types(earlier, now, place)),
        }
    }

    fn of_fields(
        &mut self,
        earlier: &[Field],
        now: &[Field],
        place: &str,
    ) -> Result<Vec<FieldStep>, Difference> {
        let mut rest = earlier.iter();
        let mut steps = Vec::with_capacity(now.len());
        for field in now {
            let place = format!("{place}.{}", field.name);
            if let Some(next) = rest.clone().next().filter(|next| field.is_called(&next.name)) {
                rest.next();
                steps.push(FieldStep::Earlier(self.of_types(&next.of, &field.of, &place)?));
            } else if rest.clone().any(|other| field.is_called(&other.name)) {
                // The one that should come first is gone, or has moved as well.
                let next = rest.next().expect("one of them has the name");
                let moved = now.iter().any(|field| field.is_called(&next.name));
                let words = if moved { "it was at another place among the fields" } else { "it is gone" };
                return Err(self.at(place, &next.name, moved, words));
            } else if let Some(default) = &field.default {
                self.changes_bytes = true;
                steps.push(FieldStep::Default(default.clone()));
            } else {
                let what = Shown { schema: self.now, of: &field.of, within: Vec::new() };
                return Err(Difference { place, words: format!("{what} is new, and has no default") });
            }
        }
        match rest.next() {
            None => Ok(steps),
            Some(gone) => {
                let what = Shown { schema: self.earlier, of: &gone.of, within: Vec::new() };
                let place = format!("{place}.{}", gone.name);
                Err(Difference { place, words: format!("it is gone, and was {what}") })
            }
        }
    }

    /// A difference at a field, or at the earlier one that should stand there.
    fn at(&self, place: String, earlier: &str, moved: bool, words: &str) -> Difference {
        let place = match place.rsplit_once('.') {
            Some((outside, _)) if !moved => format!("{outside}.{earlier}"),
            _ => place,
        };
        Difference { place, words: words.to_owned() }
    }

    fn of_variants(
        &mut self,
        earlier: &[Variant],
        now: &[Variant],
        place: &str,
    ) -> Result<Vec<Vec<FieldStep>>, Difference> {
        let mut steps = Vec::with_capacity(earlier.len());
        for (number, variant) in earlier.iter().enumerate() {
            let is_there = now.iter().any(|other| other.is_called(&variant.name));
            let Some(same) = now.get(number).filter(|same| same.is_called(&variant.name)) else {
                let words = if is_there {
                    "it was at another place among the variants; new ones come behind all others"
                } else {
                    "it is gone"
                };
                return Err(Difference {
                    place: format!("{place}.{}", variant.name),
                    words: words.to_owned(),
                });
            };
            let place = format!("{place}.{}", same.name);
            steps.push(self.of_fields(&variant.fields, &same.fields, &place)?);
        }
        Ok(steps)
    }

    fn other_types(&self, earlier: &Type, now: &Type, place: &str) -> Difference {
        let now = Shown { schema: self.now, of: now, within: Vec::new() };
        let earlier = Shown { schema: self.earlier, of: earlier, within: Vec::new() };
        Difference { place: place.to_owned(), words: format!("{now} was {earlier}") }
    }
}

impl Plan {
    /// Makes the bytes of an earlier value those of the same value of the present type.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if they are not those of a value.
    pub fn convert(&self, bytes: &[u8]) -> Result<Vec<u8>, Malformed> {
        let mut out = Vec::with_capacity(bytes.len());
        Reader::read(bytes, |from| self.walk(&self.root, from, &mut out))?;
        Ok(out)
    }

    /// The bytes of each field of an earlier struct.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if it is none, or the bytes are not those of a value.
    pub fn split<'b>(&self, bytes: &'b [u8]) -> Result<Vec<&'b [u8]>, Malformed> {
        let Step::Pair(pair) = &self.root else { return Err(Malformed::new("it has no fields")) };
        let Pair::Struct(fields) = &self.pairs[*pair] else { return Err(Malformed::new("it has no fields")) };
        let mut unused = Vec::new();
        Reader::read(bytes, |from| {
            from.nested(|from| {
                let steps = fields.iter().filter_map(|field| match field {
                    FieldStep::Earlier(step) => Some(step),
                    FieldStep::Default(_) => None,
                });
                let part = |step| {
                    let before = from.rest();
                    unused.clear();
                    self.walk(step, from, &mut unused)?;
                    Ok(&before[..before.len() - from.rest().len()])
                };
                steps.map(part).collect()
            })
        })
    }

    fn walk(&self, step: &Step, from: &mut Reader<'_>, out: &mut Vec<u8>) -> Result<(), Malformed> {
        match step {
            Step::Copy(kind) => {
                let before = from.rest();
                kind.skip(from)?;
                out.extend_from_slice(&before[..before.len() - from.rest().len()]);
                Ok(())
            }
            Step::Optional(step) => {
                let byte = from.byte()?;
                out.push(byte);
                match byte {
                    0 => Ok(()),
                    1 => self.walk(step, from, out),
                    _ => Err(Malformed::new("an option is neither there nor not")),
                }
            }
            Step::List(step) => {
                let count = from.count()?;
                put_number(count as u64, out);
                (0..count).try_for_each(|_| {
                    let before = out.len();
                    from.element(|from| self.walk(step, from, out))?;
                    if out.len() == before {
                        out.push(0);
                    }
                    Ok(())
                })
            }
            Step::Array(length, step) => {
                for _ in 0..*length {
                    let before = (from.rest().len(), out.len());
                    self.walk(step, from, out)?;
                    if before == (from.rest().len(), out.len()) {
                        // So it is with all others.
                        break;
                    }
                }
                Ok(())
            }
            Step::Tuple(steps) => steps.iter().try_for_each(|step| self.walk(step, from, out)),
            Step::Pair(pair) => from.nested(|from| match &self.pairs[*pair] {
                Pair::Struct(fields) => self.walk_fields(fields, from, out),
                Pair::Enum(variants) => {
                    let number = from.number()?;
                    put_number(number, out);
                    let fields = usize::try_from(number).ok().and_then(|number| variants.get(number));
                    self.walk_fields(fields.ok_or_else(|| Malformed::variant(number))?, from, out)
                }
            }),
        }
    }

    fn walk_fields(
        &self,
        fields: &[FieldStep],
        from: &mut Reader<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), Malformed> {
        fields.iter().try_for_each(|field| match field {
            FieldStep::Earlier(step) => self.walk(step, from, out),
            FieldStep::Default(bytes) => {
                out.extend_from_slice(bytes);
                Ok(())
            }
        })
    }
}

fn put_number(number: u64, out: &mut Vec<u8>) {
    let written = Writer::write(out, |to| to.number(number));
    debug_assert!(written.is_ok(), "a number can be written");
}

impl Kind {
    /// Takes a value.
    fn skip(self, from: &mut Reader<'_>) -> Result<(), Malformed> {
        match self {
            Self::Unit => Ok(()),
            Self::Bool | Self::U8 | Self::I8 => from.byte().map(drop),
            Self::U16 | Self::U32 | Self::U64 | Self::I16 | Self::I32 | Self::I64 | Self::Char => {
                from.number().map(drop)
            }
            Self::U128 | Self::I128 => from.wide_number().map(drop),
            Self::F32 => from.take(4).map(drop),
            Self::F64 => from.take(8).map(drop),
            Self::Text => from.text().map(drop),
        }
    }
}
