use std::marker::PhantomData;

/// Makes a value of type `S`, if `S` is `PhantomData<T>`.
#[inline(always)]
pub fn phantom<S, T>() -> Option<S> {
    if typeid::of::<S>() != typeid::of::<PhantomData<T>>() || size_of::<S>() != 0 {
        return None;
    }
    // SAFETY: `typeid::of` ignores lifetimes, so `S` is a `PhantomData` of `T` or of a type that differs from `T` in
    // lifetimes only. All `PhantomData` have no bytes, an alignment of 1 and no conditions, like `()`.
    Some(unsafe { std::mem::transmute_copy::<(), S>(&()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Secret(());

    #[test]
    fn only_phantom_data_is_made() {
        fn borrowed<'a>(_: &'a str) -> Option<PhantomData<&'a str>> {
            phantom::<_, &'a str>()
        }

        assert_eq!(phantom::<PhantomData<u8>, u8>(), Some(PhantomData));
        assert_eq!(borrowed(&String::from("a")), Some(PhantomData));
        assert_eq!(phantom::<PhantomData<u8>, u16>(), None);
        assert_eq!(phantom::<(), u8>(), None);
        assert!(phantom::<Secret, u8>().is_none());
        assert!(phantom::<Secret, Secret>().is_none());
        let Secret(()) = Secret(());
    }
}
