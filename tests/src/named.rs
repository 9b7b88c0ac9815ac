//! Enums of which all values and their names are wanted.

/// `named! { pub(crate) Kind { File = "file", Empty = "empty-file" } }` makes an enum with `ALL`,
/// its values in their order, and `name()`: without a text it is the value itself.
#[macro_export]
macro_rules! named {
    ($(#[$about:meta])* $seen:vis $kind:ident { $($value:ident $(= $name:literal)?),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        $seen enum $kind { $($value),+ }

        impl $kind {
            $seen const ALL: [Self; [$($kind::$value),+].len()] = [$(Self::$value),+];

            $seen const fn name(self) -> &'static str {
                match self { $(Self::$value => [$($name,)? stringify!($value)][0]),+ }
            }
        }
    };
}
