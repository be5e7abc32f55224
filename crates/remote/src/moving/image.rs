//! The images of keys of which the types are not known: from their stored bytes and their schema.
//!
//! A key's image depends on its type, and the types that are keys are few (crate `hotrow-tables`, `key`). So the schema tells which one it
//! is: a tuple, an option or a plain type in the schema is the key of that type; a struct or an enum is one that derives `Key`, whose
//! fields are packed. A type whose image is made by hand, or whose stored form is another type's, cannot be told from the type as which it
//! is stored.

#[cfg(test)]
mod tests;

use hotrow_stored::{Definition, Field, Kind, Malformed, Reader, Schema, Stored, Type};
use hotrow_tables::key::{
    Bytes, Encoded, Encoder, Image, Key, KeyPart, LONG, Packer, most_bits, variant_bits, words,
};

/// The condition of UUIDs in schemas.
const UUID: &str = "UUID";
/// The beginning and the end of the condition of texts in place.
const TEXT_IN_PLACE: (&str, &str) = ("up to ", " bytes of");
/// The most bytes of an array in a key. Types that are keys have fewer.
const ARRAY_MAX: usize = 1 << 16;
/// The most fields of a tuple that is a key.
const TUPLE_MAX: usize = 4;
/// The most types of a key within each other. A key that contains itself has no end.
const DEPTH_MAX: usize = 100;

/// Makes images of keys from their stored bytes.
#[derive(Debug, Clone)]
pub(crate) struct KeyForm(Form);

#[derive(Debug, Clone)]
enum Form {
    /// A value without parts.
    Plain(Kind),
    /// Bytes of any length, behind their number. True if they are a text.
    Bytes(bool),
    /// So many bytes.
    Array(usize),
    /// A text of at most so many bytes, which are followed by zeros.
    TextInPlace(usize),
    Optional(Box<Form>),
    Tuple(Vec<Form>),
    Derived(Derived),
}

#[derive(Debug, Clone)]
enum Derived {
    Struct(Vec<Form>),
    Enum(Vec<Vec<Form>>),
}

impl KeyForm {
    /// The form of keys with this schema.
    ///
    /// # Errors
    ///
    /// The part of the type that is no key.
    pub(crate) fn of(schema: &Schema) -> Result<Self, String> {
        form(schema, schema.root(), 0, false).map(Self)
    }

    /// Appends the image of a key, as [`Image::put_bytes`] does.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if the bytes are not those of a key.
    pub(crate) fn put_image(&self, key: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
        match Reader::read(key, |from| self.0.image(from))? {
            Imaged::Fixed(bytes) => out.extend_from_slice(&bytes),
            Imaged::Long { bytes, .. } => Bytes::put_bytes(&Encoded::new(&bytes), out),
        }
        Ok(())
    }
}

fn form(schema: &Schema, of: &Type, depth: usize, is_derived: bool) -> Result<Form, String> {
    let none = |what: &str| Err(format!("keys of type {schema} have an order that is not known: {what}"));
    if depth > DEPTH_MAX {
        return none("a type contains itself");
    }
    let inner = |of: &Type| form(schema, of, depth + 1, is_derived);
    let fields = |fields: &[Field]| {
        fields.iter().map(|field| form(schema, &field.of, depth + 1, true)).collect::<Result<Vec<_>, _>>()
    };
    match of {
        Type::Plain(Kind::Text) => Ok(Form::Bytes(true)),
        Type::Plain(Kind::F32 | Kind::F64) => none("there are floating-point numbers"),
        Type::Plain(Kind::Unit) if is_derived => none("a field is not stored"),
        Type::Plain(kind) => Ok(Form::Plain(*kind)),
        Type::List(element) if **element == Type::Plain(Kind::U8) => Ok(Form::Bytes(false)),
        Type::Array(count, element) if **element == Type::Plain(Kind::U8) => match usize::try_from(*count) {
            Ok(count @ ..=ARRAY_MAX) => Ok(Form::Array(count)),
            _ => none("an array is too long"),
        },
        Type::Checked(condition, of) if condition == UUID => inner(of),
        Type::Checked(condition, _) => {
            let (before, behind) = TEXT_IN_PLACE;
            let most = condition.strip_prefix(before).and_then(|rest| rest.strip_suffix(behind));
            match most.and_then(|most| most.parse().ok()) {
                Some(most @ ..=ARRAY_MAX) => Ok(Form::TextInPlace(most)),
                _ => none("a type is of the program's own"),
            }
        }
        Type::Optional(of) => Ok(Form::Optional(Box::new(inner(of)?))),
        Type::Tuple(parts) if parts.len() <= TUPLE_MAX => {
            Ok(Form::Tuple(parts.iter().map(inner).collect::<Result<_, _>>()?))
        }
        Type::List(_) | Type::Array(..) | Type::Map(..) | Type::Tuple(_) => none("there are several values"),
        Type::Defined(number) => match schema.definition(*number) {
            Some(Definition::Struct(of)) => Ok(Form::Derived(Derived::Struct(fields(of)?))),
            Some(Definition::Enum(variants)) => {
                let variants = variants.iter().map(|variant| fields(&variant.fields));
                Ok(Form::Derived(Derived::Enum(variants.collect::<Result<_, _>>()?)))
            }
            None => none("a type is missing"),
        },
    }
}

/// An image as bytes.
enum Imaged {
    /// Words, each with the most significant byte first.
    Fixed(Vec<u8>),
    /// Those of an image of any length.
    Long { bytes: Vec<u8>, is_delimited: bool },
}

impl Imaged {
    fn of(words: &[u64]) -> Self {
        Self::Fixed(words.iter().flat_map(|word| word.to_be_bytes()).collect())
    }

    fn of_encoder(encoder: Encoder) -> Self {
        Self::Long { bytes: encoder.finish().bytes().to_vec(), is_delimited: true }
    }

    /// The image of a pair, or of several images one after the other.
    fn joined(parts: Vec<Self>) -> Self {
        if parts.iter().all(|part| matches!(part, Self::Fixed(_))) {
            let bytes = parts.into_iter().flat_map(|part| match part {
                Self::Fixed(bytes) | Self::Long { bytes, .. } => bytes,
            });
            return Self::Fixed(bytes.collect());
        }
        let mut encoder = Encoder::new();
        for part in parts {
            match part {
                Self::Fixed(bytes) | Self::Long { bytes, is_delimited: true } => encoder.push(&bytes),
                Self::Long { bytes, is_delimited: false } => encoder.push_delimited(&bytes),
            }
        }
        Self::of_encoder(encoder)
    }
}

/// Takes a plain value, and hands it over as the key and the part of a key that it is.
macro_rules! with_plain {
    ($kind:expr, $from:expr, |$value:ident| $use:expr) => {
        match $kind {
            Kind::Bool => Ok(bool::get($from).map(|$value| $use)?),
            Kind::U8 => Ok(u8::get($from).map(|$value| $use)?),
            Kind::U16 => Ok(u16::get($from).map(|$value| $use)?),
            Kind::U32 => Ok(u32::get($from).map(|$value| $use)?),
            Kind::U64 => Ok(u64::get($from).map(|$value| $use)?),
            Kind::U128 => Ok(u128::get($from).map(|$value| $use)?),
            Kind::I8 => Ok(i8::get($from).map(|$value| $use)?),
            Kind::I16 => Ok(i16::get($from).map(|$value| $use)?),
            Kind::I32 => Ok(i32::get($from).map(|$value| $use)?),
            Kind::I64 => Ok(i64::get($from).map(|$value| $use)?),
            Kind::I128 => Ok(i128::get($from).map(|$value| $use)?),
            Kind::Char => Ok(char::get($from).map(|$value| $use)?),
            Kind::Unit | Kind::F32 | Kind::F64 | Kind::Text => Err(Malformed::new("it is no part of a key")),
        }
    };
}

fn image_bytes<K: Key>(key: &K) -> Vec<u8> {
    let mut bytes = Vec::new();
    K::Image::put_bytes(&key.image(), &mut bytes);
    bytes
}

fn bits_of(kind: Kind) -> usize {
    match kind {
        Kind::Bool => <bool as KeyPart>::BITS,
        Kind::U8 | Kind::I8 => 8,
        Kind::U16 | Kind::I16 => 16,
        Kind::U32 | Kind::I32 => 32,
        Kind::U64 | Kind::I64 => 64,
        Kind::U128 | Kind::I128 => 128,
        Kind::Char => <char as KeyPart>::BITS,
        Kind::Unit | Kind::F32 | Kind::F64 | Kind::Text => LONG,
    }
}

fn sum_of_bits<'f>(forms: impl IntoIterator<Item = &'f Form>) -> usize {
    forms.into_iter().map(Form::bits).fold(0, usize::saturating_add)
}

impl Derived {
    /// The number of bits that tell the variants apart.
    fn variant_bits(&self) -> usize {
        match self {
            Self::Struct(_) => 0,
            Self::Enum(variants) => variant_bits(variants.len()),
        }
    }

    fn bits(&self) -> usize {
        match self {
            Self::Struct(fields) => sum_of_bits(fields),
            Self::Enum(variants) => {
                let bits: Vec<_> = variants.iter().map(sum_of_bits).collect();
                self.variant_bits().saturating_add(most_bits(&bits))
            }
        }
    }

    /// Takes the number of the variant, if there are any. Returns it, and the fields that follow.
    fn take_variant<'f>(&'f self, from: &mut Reader<'_>) -> Result<(usize, &'f [Form]), Malformed> {
        match self {
            Self::Struct(fields) => Ok((0, fields)),
            Self::Enum(variants) => {
                let number = from.number()?;
                let known = usize::try_from(number).ok().and_then(|at| Some((at, variants.get(at)?)));
                known.map(|(at, fields)| (at, &**fields)).ok_or_else(|| Malformed::variant(number))
            }
        }
    }
}

impl Form {
    /// The image of a value as a key.
    fn image(&self, from: &mut Reader<'_>) -> Result<Imaged, Malformed> {
        match self {
            Self::Plain(Kind::Unit) => Ok(Imaged::of(&[0])),
            Self::Plain(kind) => with_plain!(kind, from, |value| Imaged::Fixed(image_bytes(&value))),
            Self::Bytes(is_text) => {
                let bytes = take_bytes(from, *is_text)?.to_vec();
                Ok(Imaged::Long { bytes, is_delimited: false })
            }
            Self::Array(_) | Self::TextInPlace(_) => self.packed(from),
            Self::Optional(of) => {
                let is_some = is_some(from)?;
                let part = if is_some { of.image(from)? } else { of.least() };
                Ok(Imaged::joined(vec![Imaged::of(&[u64::from(is_some)]), part]))
            }
            Self::Tuple(parts) => {
                let parts = parts.iter().map(|part| part.image(from));
                Ok(Imaged::joined(parts.collect::<Result<_, _>>()?))
            }
            Self::Derived(_) if self.bits() == LONG => {
                let mut encoder = Encoder::new();
                self.encode(from, &mut encoder)?;
                Ok(Imaged::of_encoder(encoder))
            }
            Self::Derived(_) => self.packed(from),
        }
    }

    fn packed(&self, from: &mut Reader<'_>) -> Result<Imaged, Malformed> {
        let mut image = vec![0; words(self.bits())];
        self.pack(from, &mut Packer::new(&mut image))?;
        Ok(Imaged::of(&image))
    }

    /// The least image.
    fn least(&self) -> Imaged {
        match self {
            Self::Plain(Kind::U128 | Kind::I128) => Imaged::of(&[0, 0]),
            Self::Plain(_) => Imaged::of(&[0]),
            Self::Bytes(_) => Imaged::Long { bytes: Vec::new(), is_delimited: false },
            Self::Array(_) | Self::TextInPlace(_) => Imaged::of(&vec![0; words(self.bits())]),
            Self::Optional(of) => match of.least() {
                Imaged::Fixed(bytes) => Imaged::Fixed([&[0; 8][..], &*bytes].concat()),
                long @ Imaged::Long { .. } => long,
            },
            Self::Tuple(parts) => match Imaged::joined(parts.iter().map(Self::least).collect()) {
                Imaged::Long { .. } => Imaged::Long { bytes: Vec::new(), is_delimited: false },
                fixed @ Imaged::Fixed(_) => fixed,
            },
            Self::Derived(_) if self.bits() == LONG => {
                Imaged::Long { bytes: Vec::new(), is_delimited: false }
            }
            Self::Derived(_) => Imaged::of(&vec![0; words(self.bits())]),
        }
    }

    /// As [`KeyPart::BITS`].
    fn bits(&self) -> usize {
        match self {
            Self::Plain(kind) => bits_of(*kind),
            Self::Bytes(_) => LONG,
            Self::Array(count) | Self::TextInPlace(count) => 8 * count,
            Self::Optional(of) => of.bits().saturating_add(1),
            Self::Tuple(parts) => sum_of_bits(parts),
            Self::Derived(derived) => derived.bits(),
        }
    }

    /// As [`KeyPart::pack`].
    fn pack(&self, from: &mut Reader<'_>, packer: &mut Packer<'_>) -> Result<(), Malformed> {
        match self {
            Self::Plain(kind) => with_plain!(kind, from, |value| value.pack(packer)),
            Self::Bytes(_) => Err(Malformed::new("bytes of any length are not packed")),
            Self::Array(count) => {
                from.take(*count)?.iter().for_each(|byte| byte.pack(packer));
                Ok(())
            }
            Self::TextInPlace(most) => {
                let bytes = take_text_in_place(from, *most)?;
                bytes.iter().for_each(|byte| byte.pack(packer));
                packer.skip(8 * (most - bytes.len()));
                Ok(())
            }
            Self::Optional(of) => {
                let is_some = is_some(from)?;
                is_some.pack(packer);
                if is_some {
                    of.pack(from, packer)
                } else {
                    packer.skip(of.bits());
                    Ok(())
                }
            }
            Self::Tuple(parts) => parts.iter().try_for_each(|part| part.pack(from, packer)),
            Self::Derived(derived) => from.nested(|from| {
                let (variant, fields) = derived.take_variant(from)?;
                packer.push_variant(variant, derived.variant_bits());
                fields.iter().try_for_each(|field| field.pack(from, packer))?;
                packer.skip(derived.bits() - derived.variant_bits() - sum_of_bits(fields));
                Ok(())
            }),
        }
    }

    /// As [`KeyPart::encode`].
    fn encode(&self, from: &mut Reader<'_>, encoder: &mut Encoder) -> Result<(), Malformed> {
        match self {
            Self::Plain(kind) => with_plain!(kind, from, |value| value.encode(encoder)),
            Self::Bytes(is_text) => {
                encoder.push_delimited(take_bytes(from, *is_text)?);
                Ok(())
            }
            Self::Array(count) => {
                encoder.push(from.take(*count)?);
                Ok(())
            }
            Self::TextInPlace(most) => {
                let bytes = take_text_in_place(from, *most)?;
                encoder.push(bytes);
                encoder.push(&vec![0; most - bytes.len()]);
                Ok(())
            }
            Self::Optional(of) => {
                let is_some = is_some(from)?;
                is_some.encode(encoder);
                if is_some { of.encode(from, encoder) } else { Ok(()) }
            }
            Self::Tuple(parts) => parts.iter().try_for_each(|part| part.encode(from, encoder)),
            Self::Derived(derived) => from.nested(|from| {
                let (variant, fields) = derived.take_variant(from)?;
                if let Derived::Enum(_) = derived {
                    (variant as u32).encode(encoder);
                }
                fields.iter().try_for_each(|field| field.encode(from, encoder))
            }),
        }
    }
}

fn is_some(from: &mut Reader<'_>) -> Result<bool, Malformed> {
    match from.byte()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Malformed::new("an option is neither there nor not")),
    }
}

fn take_bytes<'b>(from: &mut Reader<'b>, is_text: bool) -> Result<&'b [u8], Malformed> {
    if is_text {
        return from.text().map(str::as_bytes);
    }
    let count = from.count()?;
    from.take(count)
}

fn take_text_in_place<'b>(from: &mut Reader<'b>, most: usize) -> Result<&'b [u8], Malformed> {
    let bytes = take_bytes(from, true)?;
    // Zeros follow it in its place.
    match bytes.len() <= most && !bytes.contains(&0) {
        true => Ok(bytes),
        false => Err(Malformed::new("a text does not fit into its place")),
    }
}
