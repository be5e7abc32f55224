//! Schemas: all that the bytes of a type depend on, as data.
//!
//! A schema is stored itself, by the same derive, so docs/log-format.md needs no other words for it.

use crate::{Malformed, NotKept, Reader, Stored, Writer};
use std::any::TypeId;
use std::fmt;

/// Values of one encoding that have no parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Stored)]
#[hotrow(crate = "crate::facade")]
#[allow(missing_docs)]
pub enum Kind {
    Unit,
    Bool,
    U8,
    U16,
    U32,
    U64,
    U128,
    I8,
    I16,
    I32,
    I64,
    I128,
    F32,
    F64,
    Char,
    Text,
}

/// A type, as a schema knows it.
#[derive(Debug, Clone, PartialEq, Eq, Stored)]
#[hotrow(crate = "crate::facade")]
pub enum Type {
    /// A type without parts.
    Plain(Kind),
    /// An option.
    Optional(Box<Type>),
    /// Any number of elements.
    List(Box<Type>),
    /// A fixed number of elements.
    Array(u64, Box<Type>),
    /// Keys, and a value for each.
    Map(Box<Type>, Box<Type>),
    /// Parts without names.
    Tuple(Vec<Type>),
    /// Values that meet a condition, which has a name. They have the bytes of the other type.
    Checked(String, Box<Type>),
    /// A struct or an enum: its number among the schema's definitions.
    Defined(u32),
}

/// A struct or an enum. Its name does not count.
#[derive(Debug, Clone, PartialEq, Eq, Stored)]
#[hotrow(crate = "crate::facade")]
pub enum Definition {
    /// The fields, one after the other.
    Struct(Vec<Field>),
    /// The number of a variant, then its fields.
    Enum(Vec<Variant>),
}

/// A field of a struct or variant. Those without names have their numbers, from 0 on.
#[derive(Debug, Clone, Stored)]
#[hotrow(crate = "crate::facade")]
pub struct Field {
    /// The name.
    pub name: String,
    /// The type.
    pub of: Type,
    /// Earlier names. Known to the program only.
    #[stored(with = "NotKept")]
    pub aliases: Vec<String>,
    /// The bytes of its value in rows that were written before it was added. Known to the program only.
    #[stored(with = "NotKept")]
    pub default: Option<Vec<u8>>,
}

/// A variant of an enum.
#[derive(Debug, Clone, Stored)]
#[hotrow(crate = "crate::facade")]
pub struct Variant {
    /// The name.
    pub name: String,
    /// The fields.
    pub fields: Vec<Field>,
    /// Earlier names. Known to the program only.
    #[stored(with = "NotKept")]
    pub aliases: Vec<String>,
}

// What the program alone knows is no part of the schema.
impl PartialEq for Field {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.of == other.of
    }
}
impl Eq for Field {}

impl PartialEq for Variant {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.fields == other.fields
    }
}
impl Eq for Variant {}

impl Field {
    /// A field of this name.
    pub fn new(name: impl Into<String>, of: Type) -> Self {
        Self { name: name.into(), of, aliases: Vec::new(), default: None }
    }

    /// Adds an earlier name.
    #[must_use]
    pub fn alias(mut self, name: &str) -> Self {
        self.aliases.push(name.to_owned());
        self
    }

    /// Sets the value that it has in rows that were written before it was added.
    ///
    /// # Panics
    ///
    /// If the value cannot be stored.
    #[must_use]
    pub fn default(mut self, put: impl FnOnce(&mut Writer<'_>)) -> Self {
        let mut bytes = Vec::new();
        if let Err(reason) = Writer::write(&mut bytes, put) {
            panic!("the default of field {} cannot be stored: {reason}", self.name);
        }
        self.default = Some(bytes);
        self
    }

    /// True if it has, or had, this name.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.iter().any(|alias| alias == name)
    }
}

impl Variant {
    /// A variant of this name.
    pub fn new(name: impl Into<String>, fields: Vec<Field>) -> Self {
        Self { name: name.into(), fields, aliases: Vec::new() }
    }

    /// Adds an earlier name.
    #[must_use]
    pub fn alias(mut self, name: &str) -> Self {
        self.aliases.push(name.to_owned());
        self
    }

    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.iter().any(|alias| alias == name)
    }
}

/// The complete schema of a type.
#[derive(Debug, Clone, PartialEq, Eq, Stored)]
#[hotrow(crate = "crate::facade")]
pub struct Schema {
    /// The type.
    pub(crate) root: Type,
    /// The structs and enums in it, by their numbers.
    pub(crate) definitions: Vec<Definition>,
}

/// Collects the structs and enums of a schema.
#[derive(Debug, Default)]
pub struct SchemaBuilder {
    definitions: Vec<(TypeId, Option<Definition>)>,
}

impl SchemaBuilder {
    /// Adds a struct or an enum, unless it is there. A type that contains itself finds itself there.
    pub fn define<T: 'static>(&mut self, content: impl FnOnce(&mut Self) -> Definition) -> Type {
        let id = TypeId::of::<T>();
        let known = self.definitions.iter().position(|(known, _)| *known == id);
        let number = known.unwrap_or_else(|| {
            let number = self.definitions.len();
            self.definitions.push((id, None));
            let content = content(self);
            self.definitions[number].1 = Some(content);
            number
        });
        Type::Defined(number as u32)
    }
}

impl Schema {
    /// The schema of a type.
    pub fn of<T: Stored>() -> Self {
        Self::made(T::schema)
    }

    /// The schema that a function makes.
    pub fn made(root: impl FnOnce(&mut SchemaBuilder) -> Type) -> Self {
        let mut builder = SchemaBuilder::default();
        let root = root(&mut builder);
        let definitions = builder.definitions.into_iter();
        let definitions = definitions.map(|(_, definition)| definition.expect("defined by now")).collect();
        Self { root, definitions }
    }

    /// The schema as bytes.
    ///
    /// # Panics
    ///
    /// If types are nested a hundred times without a struct or enum between them.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        Writer::write(&mut bytes, |to| self.put(to)).expect("types are not nested so deeply");
        bytes
    }

    /// Reads a schema.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if the bytes are not those of one.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Malformed> {
        let schema = Reader::read(bytes, Self::get)?;
        schema.check()?;
        Ok(schema)
    }

    /// Checks that a schema that was read has all structs and enums that it names. One that a type has made has them.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if one is missing.
    pub fn check(&self) -> Result<(), Malformed> {
        let count = self.definitions.len() as u64;
        let mut missing = false;
        let mut look = |of: &Type| of.visit(&mut |number| missing |= u64::from(number) >= count);
        look(&self.root);
        for definition in &self.definitions {
            match definition {
                Definition::Struct(fields) => fields.iter().for_each(|field| look(&field.of)),
                Definition::Enum(variants) => {
                    variants.iter().flat_map(|variant| &variant.fields).for_each(|field| look(&field.of));
                }
            }
        }
        if missing { Err(Malformed::new("a schema lacks one of its types")) } else { Ok(()) }
    }

    /// The type itself.
    pub fn root(&self) -> &Type {
        &self.root
    }

    /// The struct or enum to which the schema's types refer by this number.
    pub fn definition(&self, number: u32) -> Option<&Definition> {
        self.definitions.get(number as usize)
    }

    /// The names of the type's fields, if it is a struct.
    pub fn field_names(&self) -> Option<impl Iterator<Item = &str>> {
        Some(self.fields()?.iter().map(|field| &*field.name))
    }

    /// The types of the type's fields, if it is a struct.
    pub fn field_types(&self) -> Option<impl Iterator<Item = &Type>> {
        Some(self.fields()?.iter().map(|field| &field.of))
    }

    pub(crate) fn fields(&self) -> Option<&[Field]> {
        match &self.root {
            Type::Defined(number) => match &self.definitions[*number as usize] {
                Definition::Struct(fields) => Some(fields),
                Definition::Enum(_) => None,
            },
            _ => None,
        }
    }
}

impl Type {
    /// A type without parts.
    pub const UNIT: Self = Self::Plain(Kind::Unit);

    /// A type of which values meet a condition.
    pub fn checked(condition: impl Into<String>, of: Self) -> Self {
        Self::Checked(condition.into(), Box::new(of))
    }

    /// Visits the numbers of the definitions that it names.
    fn visit(&self, look: &mut impl FnMut(u32)) {
        match self {
            Self::Plain(_) => {}
            Self::Optional(of) | Self::List(of) | Self::Array(_, of) | Self::Checked(_, of) => of.visit(look),
            Self::Map(key, value) => {
                key.visit(look);
                value.visit(look);
            }
            Self::Tuple(parts) => parts.iter().for_each(|part| part.visit(look)),
            Self::Defined(number) => look(*number),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unit => f.write_str("()"),
            kind => f.write_str(&format!("{kind:?}").to_lowercase()),
        }
    }
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Shown { schema: self, of: &self.root, within: Vec::new() }.fmt(f)
    }
}

/// A type of a schema, in words. A type that contains itself is `…` where it does.
pub(crate) struct Shown<'s> {
    pub(crate) schema: &'s Schema,
    pub(crate) of: &'s Type,
    /// The structs and enums that it is within.
    pub(crate) within: Vec<u32>,
}

impl Shown<'_> {
    fn part<'s>(&'s self, of: &'s Type) -> Shown<'s> {
        Shown { schema: self.schema, of, within: self.within.clone() }
    }

    fn fields(&self, fields: &[Field], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbered = fields.iter().enumerate().all(|(at, field)| field.name == at.to_string());
        f.write_str(if numbered { "(" } else { "{" })?;
        for (at, field) in fields.iter().enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            let name = if numbered { String::new() } else { format!("{}: ", field.name) };
            write!(f, "{comma}{name}{}", self.part(&field.of))?;
        }
        f.write_str(if numbered { ")" } else { "}" })
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.of {
            Type::Plain(kind) => kind.fmt(f),
            Type::Optional(of) => write!(f, "optional {}", self.part(of)),
            Type::List(of) => write!(f, "list of {}", self.part(of)),
            Type::Array(count, of) => write!(f, "{count} of {}", self.part(of)),
            Type::Map(key, value) => write!(f, "map of {} to {}", self.part(key), self.part(value)),
            Type::Checked(condition, of) => write!(f, "{condition} {}", self.part(of)),
            Type::Tuple(parts) => {
                f.write_str("(")?;
                for (at, part) in parts.iter().enumerate() {
                    write!(f, "{}{}", if at > 0 { ", " } else { "" }, self.part(part))?;
                }
                f.write_str(")")
            }
            Type::Defined(number) if self.within.contains(number) => f.write_str("…"),
            Type::Defined(number) => {
                let mut within = self.within.clone();
                within.push(*number);
                let inside = Shown { schema: self.schema, of: self.of, within };
                match &self.schema.definitions[*number as usize] {
                    Definition::Struct(fields) => inside.fields(fields, f),
                    Definition::Enum(variants) => {
                        variants.iter().enumerate().try_for_each(|(at, variant)| {
                            f.write_str(if at > 0 { " | " } else { "" })?;
                            f.write_str(&variant.name)?;
                            if variant.fields.is_empty() {
                                return Ok(());
                            }
                            let open = if variant.fields[0].name == "0" { "" } else { " " };
                            f.write_str(open)?;
                            inside.fields(&variant.fields, f)
                        })
                    }
                }
            }
        }
    }
}
