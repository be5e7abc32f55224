//! Fewer instantiations in unoptimized builds.

/// In an unoptimized build, hides a closure's type behind a pointer, so that the generic code that calls it is compiled once for each
/// type of its result, not once for each closure. Such builds run every test under every protocol, and most of their time is
/// that of the compiler. An optimized build is as without it.
///
/// `hide_closure!(load: FnMut() -> V)`, `hide_closure!(change: FnOnce(&mut R) -> O)`; the function has one argument at most.
#[doc(hidden)]
#[macro_export]
macro_rules! hide_closure {
    ($closure:ident: FnMut($($argument:ty)?) -> $result:ty) => {
        #[cfg(debug_assertions)]
        let mut $closure = $closure;
        #[cfg(debug_assertions)]
        let $closure: &mut dyn FnMut($($argument)?) -> $result = &mut $closure;
    };
    ($closure:ident: FnOnce($($argument:ty)?) -> $result:ty) => {
        #[cfg(debug_assertions)]
        let mut $closure = Some($closure);
        #[cfg(debug_assertions)]
        let $closure: &mut dyn FnMut($($argument)?) -> $result =
            &mut $crate::hide_closure!(@once $closure $($argument)?);
    };
    (@once $closure:ident) => {
        move || $closure.take().expect("it is called once")()
    };
    (@once $closure:ident $argument:ty) => {
        move |argument: $argument| $closure.take().expect("it is called once")(argument)
    };
}
