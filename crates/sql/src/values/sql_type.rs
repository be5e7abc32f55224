//! Types of SQL, with PostgreSQL's numbers for them.

use hotrow::Stored;

macro_rules! types {
    ($($(#[$attribute:meta])* $variant:ident = $oid:literal, $length:literal, $internal:literal, $name:literal;)*) => {
        /// A type of values.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Stored)]
        pub enum Type {
            $($(#[$attribute])* #[doc = concat!("`", $name, "`.")] $variant,)*
        }

        impl Type {
            /// All types.
            pub const ALL: &'static [Type] = &[$(Type::$variant),*];

            /// PostgreSQL's number for it.
            pub fn oid(self) -> u32 {
                match self { $(Type::$variant => $oid,)* }
            }

            /// Its size in bytes as `pg_type.typlen` says it; -1 if it varies.
            pub fn length(self) -> i16 {
                match self { $(Type::$variant => $length,)* }
            }

            /// Its name in `pg_type`, as `int4`.
            pub fn internal_name(self) -> &'static str {
                match self { $(Type::$variant => $internal,)* }
            }

            /// Its name in SQL, as `integer`.
            pub fn name(self) -> &'static str {
                match self { $(Type::$variant => $name,)* }
            }
        }
    };
}

types! {
    Bool = 16, 1, "bool", "boolean";
    Bytea = 17, -1, "bytea", "bytea";
    /// One byte, of the catalog's tables.
    Letter = 18, 1, "char", "\"char\"";
    Name = 19, 64, "name", "name";
    Int8 = 20, 8, "int8", "bigint";
    Int2 = 21, 2, "int2", "smallint";
    Int2Vector = 22, -1, "int2vector", "int2vector";
    Int4 = 23, 4, "int4", "integer";
    Regproc = 24, 4, "regproc", "regproc";
    Text = 25, -1, "text", "text";
    Oid = 26, 4, "oid", "oid";
    OidVector = 30, -1, "oidvector", "oidvector";
    Json = 114, -1, "json", "json";
    NodeTree = 194, -1, "pg_node_tree", "pg_node_tree";
    Float4 = 700, 4, "float4", "real";
    Float8 = 701, 8, "float8", "double precision";
    /// A literal in quotes whose type is not known yet.
    Unknown = 705, -2, "unknown", "unknown";
    Char = 1042, -1, "bpchar", "character";
    Varchar = 1043, -1, "varchar", "character varying";
    Date = 1082, 4, "date", "date";
    Time = 1083, 8, "time", "time without time zone";
    Timestamp = 1114, 8, "timestamp", "timestamp without time zone";
    TimestampTz = 1184, 8, "timestamptz", "timestamp with time zone";
    Interval = 1186, 16, "interval", "interval";
    Numeric = 1700, -1, "numeric", "numeric";
    Regclass = 2205, 4, "regclass", "regclass";
    Regtype = 2206, 4, "regtype", "regtype";
    Regnamespace = 4089, 4, "regnamespace", "regnamespace";
    Void = 2278, 4, "void", "void";
    Uuid = 2950, 16, "uuid", "uuid";
    BoolArray = 1000, -1, "_bool", "boolean[]";
    LetterArray = 1002, -1, "_char", "\"char\"[]";
    NameArray = 1003, -1, "_name", "name[]";
    Int2Array = 1005, -1, "_int2", "smallint[]";
    Int4Array = 1007, -1, "_int4", "integer[]";
    TextArray = 1009, -1, "_text", "text[]";
    VarcharArray = 1015, -1, "_varchar", "character varying[]";
    Int8Array = 1016, -1, "_int8", "bigint[]";
    Float8Array = 1022, -1, "_float8", "double precision[]";
    OidArray = 1028, -1, "_oid", "oid[]";
    NumericArray = 1231, -1, "_numeric", "numeric[]";
    ByteaArray = 1001, -1, "_bytea", "bytea[]";
    CharArray = 1014, -1, "_bpchar", "character[]";
    Float4Array = 1021, -1, "_float4", "real[]";
    TimestampArray = 1115, -1, "_timestamp", "timestamp without time zone[]";
    DateArray = 1182, -1, "_date", "date[]";
    TimeArray = 1183, -1, "_time", "time without time zone[]";
    TimestampTzArray = 1185, -1, "_timestamptz", "timestamp with time zone[]";
    IntervalArray = 1187, -1, "_interval", "interval[]";
    RegclassArray = 2210, -1, "_regclass", "regclass[]";
    RegtypeArray = 2211, -1, "_regtype", "regtype[]";
    UuidArray = 2951, -1, "_uuid", "uuid[]";
}

impl Type {
    /// The type that PostgreSQL has under this number.
    pub fn of_oid(oid: u32) -> Option<Type> {
        Self::ALL.iter().copied().find(|known| known.oid() == oid)
    }

    /// The type of the elements, if it is an array.
    pub fn element(self) -> Option<Type> {
        Some(match self {
            Self::BoolArray => Self::Bool,
            Self::LetterArray => Self::Letter,
            Self::NameArray => Self::Name,
            Self::Int2Array | Self::Int2Vector => Self::Int2,
            Self::Int4Array => Self::Int4,
            Self::TextArray => Self::Text,
            Self::VarcharArray => Self::Varchar,
            Self::Int8Array => Self::Int8,
            Self::Float8Array => Self::Float8,
            Self::OidArray | Self::OidVector => Self::Oid,
            Self::NumericArray => Self::Numeric,
            Self::ByteaArray => Self::Bytea,
            Self::CharArray => Self::Char,
            Self::Float4Array => Self::Float4,
            Self::TimestampArray => Self::Timestamp,
            Self::DateArray => Self::Date,
            Self::TimeArray => Self::Time,
            Self::TimestampTzArray => Self::TimestampTz,
            Self::IntervalArray => Self::Interval,
            Self::RegclassArray => Self::Regclass,
            Self::RegtypeArray => Self::Regtype,
            Self::UuidArray => Self::Uuid,
            _ => return None,
        })
    }

    /// The array type whose elements are of this type.
    pub fn array(self) -> Option<Type> {
        Self::ALL.iter().copied().find(|array| {
            array.element() == Some(self) && !matches!(array, Self::Int2Vector | Self::OidVector)
        })
    }

    /// True for text in all its forms.
    pub fn is_text(self) -> bool {
        matches!(
            self,
            Self::Text
                | Self::Varchar
                | Self::Char
                | Self::Name
                | Self::Letter
                | Self::Unknown
                | Self::Json
                | Self::NodeTree
        )
    }

    /// True for numbers.
    pub fn is_number(self) -> bool {
        matches!(self, Self::Int2 | Self::Int4 | Self::Int8 | Self::Float4 | Self::Float8 | Self::Numeric)
    }

    /// Its category, as `pg_type.typcategory`.
    pub fn category(self) -> char {
        match self {
            Self::Bool => 'B',
            Self::Bytea | Self::Uuid | Self::Json => 'U',
            Self::Letter | Self::NodeTree => 'Z',
            Self::Name | Self::Text | Self::Char | Self::Varchar => 'S',
            Self::Int2 | Self::Int4 | Self::Int8 | Self::Float4 | Self::Float8 | Self::Numeric => 'N',
            Self::Oid | Self::Regproc | Self::Regclass | Self::Regtype | Self::Regnamespace => 'N',
            Self::Date | Self::Time | Self::Timestamp | Self::TimestampTz => 'D',
            Self::Interval => 'T',
            Self::Unknown => 'X',
            Self::Void => 'P',
            _ => 'A',
        }
    }

    /// True if it is preferred among the types of its category, as `pg_type.typispreferred`.
    pub fn is_preferred(self) -> bool {
        matches!(
            self,
            Self::Bool | Self::Text | Self::Float8 | Self::Oid | Self::TimestampTz | Self::Interval
        )
    }

    /// True if its values are numbers of objects of the catalog ([`Datum::Oid`](crate::values::Datum::Oid)).
    pub fn is_oid(self) -> bool {
        matches!(self, Self::Oid | Self::Regproc | Self::Regclass | Self::Regtype | Self::Regnamespace)
    }

    /// The type of a name that SQL or `pg_type` has for it, in lower case: `int4`, `integer`, `character varying`, `float`, `text[]`.
    pub fn of_name(name: &str) -> Option<Type> {
        if let Some(element) = name.strip_suffix("[]") {
            return Self::of_name(element)?.array();
        }
        Some(match name {
            "int" => Self::Int4,
            "char" => Self::Char,
            "decimal" | "dec" => Self::Numeric,
            "float" => Self::Float8,
            "\"char\"" => Self::Letter,
            "time" => Self::Time,
            "timestamp" => Self::Timestamp,
            _ => {
                return Self::ALL
                    .iter()
                    .copied()
                    .find(|known| known.name() == name || known.internal_name() == name);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Type;

    #[test]
    fn names_and_numbers_lead_back_to_the_type() {
        for known in Type::ALL {
            assert_eq!(Type::of_oid(known.oid()), Some(*known));
            assert_eq!(Type::of_name(known.name()), Some(*known));
        }
        assert_eq!(Type::of_name("int[]"), Some(Type::Int4Array));
        assert_eq!(Type::of_name("nothing"), None);
    }

    #[test]
    fn an_array_type_has_its_element() {
        for known in Type::ALL {
            if let Some(array) = known.array() {
                assert_eq!(array.element(), Some(*known));
            }
        }
    }
}
