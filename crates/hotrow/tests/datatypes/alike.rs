//! Every datatype behaves as its model does.

use crate::models::*;
use hotrow_check::datatype::{Effort, check_datatype};

macro_rules! alike {
    ($($name:ident: $model:ty,)*) => {
        $(mod $name {
            use super::*;

            #[test]
            fn behaves_as_its_model() {
                check_datatype::<$model>(Effort::SHORT);
            }

            #[test]
            #[ignore = "long: run with -- --ignored"]
            fn behaves_as_its_model_for_long() {
                check_datatype::<$model>(Effort::LONG);
            }
        })*
    };
}

for_each_model!(alike);
