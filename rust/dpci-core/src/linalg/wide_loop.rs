//! Plain loops compiled for the widest vectors of the processor at hand.

/// A plain loop as a type, because a closure would not be compiled for the wide instruction sets.
macro_rules! wide_loop {
    ($(#[$doc:meta])* $visible:vis fn $name:ident($($argument:ident: $type:ty),*) $body:block) => {
        $(#[$doc])*
        $visible fn $name<'a>($($argument: $type),*) {
            struct Op<'a>($($type),*);
            impl WithSimd for Op<'_> {
                type Output = ();
                #[inline(always)]
                fn with_simd<S: Simd>(self, _simd: S) {
                    let Op($($argument),*) = self;
                    $body
                }
            }
            $crate::linalg::arch().dispatch(Op($($argument),*));
        }
    };
}
