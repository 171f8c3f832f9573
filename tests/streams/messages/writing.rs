//! Values written one after the other; writers and values that fail.

use super::*;

#[test]
fn many_values_are_handed_over_one_by_one() {
    let messages = messages();
    let mut serializer = tenarc::Serializer::new(Vec::new());
    let mut expected = Vec::new();
    for message in &messages {
        message.serialize(&mut serializer).unwrap();
        expected.extend(tenarc::to_vec(message).unwrap());
        assert!(*serializer.get_ref() == expected);
    }
    serializer.get_mut().push(0xf6);
    expected.push(0xf6);
    "end".serialize(&mut serializer).unwrap();
    expected.extend(b"\x63end");
    assert!(serializer.into_inner() == expected);
}

/// Every form that a value can have at the top.
macro_rules! every_form {
    ($each:ident) => {
        $each!(true);
        $each!(-5i8);
        $each!(u64::MAX);
        $each!(u128::MAX);
        $each!(0.5f32);
        $each!(f64::MAX);
        $each!('ß');
        $each!("text");
        $each!(serde_bytes::Bytes::new(b"bytes"));
        $each!(());
        $each!(None::<u8>);
        $each!(Some(Some(())));
        $each!(Kind::Start);
        $each!(Kind::Text("text".into()));
        $each!(Kind::Pair(1, 2.0));
        $each!(Kind::Range { from: 1, to: 2 });
        $each!((1, "tuple"));
        $each!(vec![0.5f32; 100]);
        $each!(vec!["a", "b"]);
        $each!(Elements(&[0.5; 100], None));
        $each!(Elements(&[0.5; 2], None));
        $each!(BTreeMap::from([(1, "one"), (2, "two")]));
        $each!(messages()[4]);
        $each!(Tensor(Array2::<f64>::eye(3)));
        $each!(tenarc::to_value(&messages()[3]).unwrap());
        $each!(*RawValue::from_bytes(&[0x82, 0x01, 0x02]).unwrap());
    };
}

/// Writes its elements one by one, and fails before the one of that number.
struct Elements<'a>(&'a [f64], Option<usize>);

impl Serialize for Elements<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(Some(self.0.len()))?;
        for (index, element) in self.0.iter().enumerate() {
            if self.1 == Some(index) {
                return Err(S::Error::custom("no more elements"));
            }
            seq.serialize_element(element)?;
        }
        seq.end()
    }
}

fn both_ways() -> [EncodeOptions; 2] {
    [false, true].map(|on| EncodeOptions::default().with_typed_arrays(on))
}

#[test]
fn when_a_call_returns_all_of_the_value_has_been_handed_over() {
    for options in both_ways() {
        macro_rules! each {
            ($value:expr) => {
                let value = &$value;
                let expected = tenarc::ser::to_vec_with(value, options).unwrap();
                let mut serializer = tenarc::Serializer::with_options(Vec::new(), options);
                for times in 1..3 {
                    value.serialize(&mut serializer).unwrap();
                    let found = hex(serializer.get_ref());
                    assert_eq!(found, hex(&expected.repeat(times)), "{}", stringify!($value));
                }
            };
        }
        every_form!(each);
    }
}

/// Takes so many bytes, then fails, and goes on failing.
struct Failing {
    taken: Vec<u8>,
    room: usize,
    error: Option<ErrorKind>,
}

impl Write for Failing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = bytes.len().min(self.room - self.taken.len());
        if len == 0 {
            return self.error.map_or(Ok(0), |kind| Err(kind.into()));
        }
        self.taken.extend(&bytes[..len]);
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[track_caller]
fn fails_at<T: Serialize + ?Sized>(value: &T, options: EncodeOptions, room: usize) {
    let expected = tenarc::ser::to_vec_with(value, options).unwrap();
    assert!(room < expected.len());
    for error in [Some(ErrorKind::BrokenPipe), None] {
        let writer = Failing { taken: Vec::new(), room, error };
        let mut serializer = tenarc::Serializer::with_options(writer, options);
        let failed = value.serialize(&mut serializer).unwrap_err();
        assert_eq!(failed.category(), Category::Io, "{failed}");
        let kind = error.unwrap_or(ErrorKind::WriteZero);
        assert_eq!(io::Error::from(failed).kind(), kind);
        assert!(serializer.get_ref().taken == expected[..room], "room for {room}");

        // Also when there is room again.
        serializer.get_mut().room = usize::MAX;
        for _ in 0..2 {
            let refused = 1.serialize(&mut serializer).unwrap_err();
            assert_eq!(refused.category(), Category::Data);
            assert!(refused.to_string().contains("an earlier value failed"), "{refused}");
            assert!([1].serialize(&mut serializer).is_err());
            assert!(value.serialize(&mut serializer).is_err());
        }
        assert!(serializer.into_inner().taken == expected[..room], "room for {room}");
    }
    let mut writer = Failing { taken: Vec::new(), room, error: Some(ErrorKind::Other) };
    let failed = tenarc::ser::to_writer_with(&mut writer, value, options).unwrap_err();
    assert_eq!(failed.category(), Category::Io);
    assert!(writer.taken == expected[..room]);
}

#[test]
fn a_writer_that_fails_at_any_byte_ends_the_stream() {
    for options in both_ways() {
        macro_rules! each {
            ($value:expr) => {
                let value = &$value;
                for room in 0..tenarc::ser::to_vec_with(value, options).unwrap().len() {
                    fails_at(value, options, room);
                }
            };
        }
        every_form!(each);
    }
}

#[test]
fn a_writer_that_fails_in_a_large_value_ends_the_stream() {
    let messages = messages();
    let large = &messages[11];
    let numbers = vec![0.25; 10_000];
    let packed = Elements(&numbers, None);
    for options in both_ways() {
        let len = tenarc::ser::to_vec_with(large, options).unwrap().len();
        for room in (0..len).step_by(4999).chain([len - 1]) {
            fails_at(large, options, room);
        }
        let len = tenarc::ser::to_vec_with(&packed, options).unwrap().len();
        for room in (0..len).step_by(9973).chain([len - 1]) {
            fails_at(&packed, options, room);
            fails_at(&(0, &packed, "end"), options, room);
        }
    }
}

#[test]
fn a_failure_in_a_later_value_leaves_the_earlier_ones_whole() {
    let messages = &messages()[..6];
    let bytes = written(messages);
    for room in (0..bytes.len()).step_by(7) {
        let writer = Failing { taken: Vec::new(), room, error: Some(ErrorKind::StorageFull) };
        let mut serializer = tenarc::Serializer::new(writer);
        let done = messages.iter().take_while(|m| m.serialize(&mut serializer).is_ok()).count();
        let taken = serializer.into_inner().taken;
        assert!(taken == bytes[..room]);
        let stream = tenarc::Deserializer::from_slice(&taken).into_iter::<Message>();
        let back: Vec<Message> = stream.map_while(Result::ok).collect();
        assert_eq!(back, messages[..done]);
    }
}

#[test]
fn writers_may_take_a_byte_at_a_time_and_be_interrupted() {
    struct Slow(Vec<u8>, u8);
    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.1 = self.1.wrapping_add(1);
            match self.1 % 3 {
                0 => Err(ErrorKind::Interrupted.into()),
                _ => self.0.write(&bytes[..bytes.len().min(1)]),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            panic!("nobody asked for a flush")
        }
    }
    let messages = &messages()[..10];
    let mut serializer = tenarc::Serializer::new(Slow(Vec::new(), 0));
    for message in messages {
        message.serialize(&mut serializer).unwrap();
    }
    assert!(serializer.into_inner().0 == written(messages));
}

#[test]
fn a_value_that_fails_half_way_ends_the_stream_before_it() {
    for options in both_ways() {
        for failing in [0, 1, 99] {
            let mut serializer = tenarc::Serializer::with_options(Vec::new(), options);
            "before".serialize(&mut serializer).unwrap();
            let value = (1, Elements(&[0.5; 100], Some(failing)));
            let error = value.serialize(&mut serializer).unwrap_err();
            assert_eq!(error.category(), Category::Data);
            assert_eq!(error.to_string(), "no more elements at `1`");
            let refused = "after".serialize(&mut serializer).unwrap_err();
            assert!(refused.to_string().contains("an earlier value failed"), "{refused}");
            // Nothing of a small value goes out before it is whole.
            assert_eq!(serializer.into_inner(), b"\x66before");
        }
    }
}

#[test]
fn a_value_that_panics_half_way_ends_the_stream_too() {
    struct Panics;
    impl Serialize for Panics {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut seq = serializer.serialize_seq(Some(3))?;
            seq.serialize_element(&1)?;
            panic!("in the middle")
        }
    }
    fn refuses_after<T: Serialize>(value: &T) {
        let mut serializer = tenarc::Serializer::new(Vec::new());
        let result = catch_unwind(AssertUnwindSafe(|| value.serialize(&mut serializer).is_ok()));
        assert!(result.is_err());
        assert!("after".serialize(&mut serializer).is_err());
        assert_eq!(serializer.into_inner(), b"");
    }
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let result = catch_unwind(|| {
        refuses_after(&Panics);
        refuses_after(&Some(Panics));
        refuses_after(&(1, Panics));
        refuses_after(&BTreeMap::from([("key", vec![Panics])]));
    });
    std::panic::set_hook(hook);
    result.unwrap();
}

#[test]
fn a_value_refused_before_its_first_byte_spoils_nothing() {
    let options = EncodeOptions::default().with_max_depth(1);
    let mut serializer = tenarc::Serializer::with_options(Vec::new(), options);
    let error = Kind::Pair(1, 1.0).serialize(&mut serializer).unwrap_err();
    assert_eq!(error.category(), Category::Limit);
    [1].serialize(&mut serializer).unwrap();
    assert_eq!(serializer.into_inner(), [0x81, 0x01]);
}

/// Announces so many elements, and gives so many.
struct Wrong {
    form: Form,
    announced: usize,
    given: usize,
}

#[derive(Clone, Copy, Debug)]
enum Form {
    Seq,
    Tuple,
    TupleVariant,
    Map,
    Entries,
    Struct,
    Iterator,
}

const FORMS: [Form; 7] = [
    Form::Seq,
    Form::Tuple,
    Form::TupleVariant,
    Form::Map,
    Form::Entries,
    Form::Struct,
    Form::Iterator,
];

/// An iterator that announces another length than it has.
struct Lying<I>(I, usize);

impl<I: Iterator> Iterator for Lying<I> {
    type Item = I::Item;

    fn next(&mut self) -> Option<I::Item> {
        self.0.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.1, Some(self.1))
    }
}

impl Serialize for Wrong {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { form, announced, given } = *self;
        let numbers = (0..given).map(|_| 0.5f64);
        match form {
            Form::Seq => {
                let mut seq = serializer.serialize_seq(Some(announced))?;
                numbers.clone().try_for_each(|number| seq.serialize_element(&number))?;
                seq.end()
            }
            Form::Tuple => {
                let mut tuple = serializer.serialize_tuple(announced)?;
                numbers.clone().try_for_each(|number| tuple.serialize_element(&number))?;
                tuple.end()
            }
            Form::TupleVariant => {
                let mut tuple = serializer.serialize_tuple_variant("Enum", 0, "V", announced)?;
                numbers.clone().try_for_each(|number| tuple.serialize_field(&number))?;
                tuple.end()
            }
            Form::Map => {
                let mut map = serializer.serialize_map(Some(announced))?;
                for key in 0..given {
                    map.serialize_key(&key)?;
                    map.serialize_value(&0)?;
                }
                map.end()
            }
            Form::Entries => {
                let mut map = serializer.serialize_map(Some(announced))?;
                (0..given).try_for_each(|key| map.serialize_entry(&key, &0))?;
                map.end()
            }
            Form::Struct => {
                let mut fields = serializer.serialize_struct("Struct", announced)?;
                (0..given).try_for_each(|_| fields.serialize_field("field", &0))?;
                fields.end()
            }
            Form::Iterator => serializer.collect_seq(Lying(numbers, announced)),
        }
    }
}

#[test]
fn a_length_other_than_announced_is_an_error_with_its_path() {
    for options in both_ways() {
        for form in FORMS {
            for (announced, given) in [(3, 2), (2, 3), (0, 1), (1, 0), (200, 199), (199, 200)] {
                let value = (0, Wrong { form, announced, given });
                let what = format!("{form:?}: {announced} announced, {given} given");
                let error = tenarc::ser::to_vec_with(&value, options).unwrap_err();
                assert_eq!(error.category(), Category::Data, "{what}: {error}");
                assert!(error.to_string().contains("than it announced"), "{what}: {error}");
                assert!(error.path().starts_with('1'), "{what}: {error}");
                if given > announced && matches!(form, Form::Seq | Form::Tuple | Form::Iterator) {
                    assert_eq!(error.path(), format!("1.{announced}"), "{what}");
                }
                let mut out = Vec::new();
                assert!(tenarc::ser::to_writer_with(&mut out, &value, options).is_err(), "{what}");

                let mut serializer = tenarc::Serializer::with_options(Vec::new(), options);
                assert!(value.1.serialize(&mut serializer).is_err(), "{what}");
                let refused = 1.serialize(&mut serializer);
                assert!(refused.is_err(), "{what}");
            }
            let right = Wrong { form, announced: 20, given: 20 };
            tenarc::ser::to_vec_with(&right, options).unwrap();
        }
    }
}

#[test]
fn keys_and_values_of_a_map_come_in_pairs() {
    struct Pairs(&'static str, Option<usize>);
    impl Serialize for Pairs {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut map = serializer.serialize_map(self.1)?;
            for step in self.0.chars() {
                match step {
                    'k' => map.serialize_key(&1)?,
                    _ => map.serialize_value(&2)?,
                }
            }
            map.end()
        }
    }
    for len in [None, Some(1), Some(2)] {
        for steps in ["k", "v", "kk", "vk", "kvk", "kvv", "kkvv"] {
            let error = tenarc::to_vec(&Pairs(steps, len)).unwrap_err();
            assert_eq!(error.category(), Category::Data, "{steps} of {len:?}");
            let error = tenarc::to_value(&Pairs(steps, None)).unwrap_err();
            assert_eq!(error.category(), Category::Data, "{steps}");
        }
    }
    assert_eq!(hex(&tenarc::to_vec(&Pairs("kvkv", None)).unwrap()), "bf01020102ff");
    assert_eq!(hex(&tenarc::to_vec(&Pairs("kvkv", Some(2))).unwrap()), "a201020102");
}

/// Gives one text and the other in turn as it is walked, and a tensor large enough to be walked twice.
struct Changing<'a> {
    walks: Cell<usize>,
    texts: [&'a str; 2],
    tensor: Tensor<Array1<f64>>,
    fails: Option<usize>,
}

impl Serialize for Changing<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let walk = self.walks.replace(self.walks.get() + 1);
        let mut tuple = serializer.serialize_tuple(3)?;
        tuple.serialize_element(self.texts[walk % 2])?;
        tuple.serialize_element(&self.tensor)?;
        if self.fails == Some(walk % 2) {
            return Err(S::Error::custom("failed on purpose"));
        }
        tuple.serialize_element(self.texts[walk % 2])?;
        tuple.end()
    }
}

fn changing<'a>(first: &'a str, second: &'a str, fails: Option<usize>) -> Changing<'a> {
    let tensor = Tensor(Array1::from_elem(200_000, 0.25));
    Changing { walks: Cell::new(0), texts: [first, second], tensor, fails }
}

#[test]
fn a_value_that_changes_between_two_walks_is_an_error() {
    for (first, second) in [("short", "longer text"), ("longer text", "short"), ("", "x")] {
        let value = changing(first, second, None);
        let error = tenarc::to_vec(&value).unwrap_err();
        assert_eq!(value.walks.get(), 2, "large tensors are measured first");
        assert_eq!(error.category(), Category::Data);
        assert!(error.to_string().contains("between the two passes"), "{error}");

        let mut buffer = b"kept".to_vec();
        assert!(tenarc::append_to(&mut buffer, &changing(first, second, None)).is_err());
        assert_eq!(buffer, b"kept");
    }
    let same = changing("text", "text", None);
    let bytes = tenarc::to_vec(&same).unwrap();
    assert_eq!(bytes.capacity(), bytes.len(), "allocated to the byte");
    let mut written = Vec::new();
    tenarc::to_writer(&mut written, &same).unwrap();
    assert!(written == bytes);
    assert_eq!(same.walks.get(), 3, "a writer takes one walk");
}

#[test]
fn on_an_error_the_buffer_is_as_it_was() {
    fn keeps<T: Serialize + ?Sized>(value: &T, options: EncodeOptions, message: &str) {
        for capacity in [0, 10, 4096] {
            let mut buffer = Vec::with_capacity(capacity);
            buffer.extend(b"record before");
            let error = tenarc::ser::append_to_with(&mut buffer, value, options).unwrap_err();
            assert!(error.to_string().contains(message), "{error}");
            assert_eq!(buffer, b"record before", "{error}");
            // And of use.
            tenarc::ser::append_to_with(&mut buffer, &[1, 2], options).unwrap();
            assert_eq!(buffer, b"record before\x82\x01\x02");
        }
    }
    for options in both_ways() {
        for at in [0, 1, 50, 99] {
            keeps(&Elements(&[0.5; 100], Some(at)), options, "no more elements");
            keeps(&(1, Elements(&[0.5; 100], Some(at))), options, "no more elements");
            let large = Tensor(Array1::<f64>::zeros(200_000));
            let value = (large, Elements(&[0.5; 100], Some(at)));
            keeps(&value, options, "no more elements");
        }
        keeps(&changing("a", "a", Some(0)), options, "failed on purpose");
        for form in FORMS {
            keeps(&Wrong { form, announced: 100, given: 99 }, options, "than it announced");
            keeps(&Wrong { form, announced: 99, given: 100 }, options, "than it announced");
        }
        let deep = (0..200).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
        keeps(&deep, options, "nested deeper than 128 levels");
    }
    let mut buffer = b"record before".to_vec();
    assert!(tenarc::append_to(&mut buffer, &changing("a", "a", Some(1))).is_err());
    assert_eq!(buffer, b"record before");
}

#[test]
fn errors_of_a_value_carry_the_path_to_it() {
    struct Fails;
    impl Serialize for Fails {
        fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(S::Error::custom("poisoned"))
        }
    }
    #[derive(Serialize)]
    struct Model<T> {
        layers: Vec<BTreeMap<T, Option<(u8, Enum)>>>,
    }
    #[derive(Serialize)]
    enum Enum {
        Newtype(Fails),
        Tuple(u8, Fails),
        Struct { field: Fails },
    }
    fn path<T: Serialize + Ord>(key: T, value: Enum) -> String {
        let layers = vec![BTreeMap::new(), BTreeMap::from([(key, Some((1, value)))])];
        let model = Model { layers };
        let error = tenarc::to_vec(&model).unwrap_err();
        assert!(error.to_string().starts_with("poisoned at `"), "{error}");
        let other = tenarc::to_value(&model).unwrap_err();
        assert_eq!(other.path(), error.path());
        let mut out = Vec::new();
        assert_eq!(tenarc::to_writer(&mut out, &model).unwrap_err().path(), error.path());
        error.path()
    }
    assert_eq!(path("key", Enum::Newtype(Fails)), "layers.1.key.1.Newtype");
    assert_eq!(path(-7, Enum::Tuple(0, Fails)), "layers.1.-7.1.Tuple.1");
    assert_eq!(path(true, Enum::Struct { field: Fails }), "layers.1.true.1.Struct.field");
    assert_eq!(path((1, "a"), Enum::Newtype(Fails)), r#"layers.1.[1, "a"].1.Newtype"#);
}
