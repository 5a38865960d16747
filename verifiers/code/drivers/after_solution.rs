#[allow(unused_macros)] macro_rules! assert { ($($t:tt)*) => { ::std::assert!($($t)*) } }
#[allow(unused_macros)] macro_rules! assert_eq { ($($t:tt)*) => { ::std::assert_eq!($($t)*) } }
#[allow(unused_macros)] macro_rules! assert_ne { ($($t:tt)*) => { ::std::assert_ne!($($t)*) } }
#[allow(unused_macros)] macro_rules! panic { ($($t:tt)*) => { ::std::panic!($($t)*) } }
#[allow(unused_macros)] macro_rules! println { ($($t:tt)*) => { ::std::println!($($t)*) } }
