//! Values read one after the other, and readers that fail.

use super::*;

#[test]
fn many_messages_from_every_source() {
    let messages = messages();
    let bytes = written(&messages);
    assert!(bytes.len() > 200_000);
    let mut ends = Vec::new();
    for message in &messages {
        let len = tenarc::to_vec(message).unwrap().len() as u64;
        ends.push(ends.last().unwrap_or(&0) + len);
    }
    for (source, read) in read_all::<Message>(&bytes) {
        let offsets: Vec<u64> = read.iter().map(|(_, end)| *end).collect();
        assert_eq!(offsets, ends, "{source}");
        for ((back, _), message) in read.into_iter().zip(&messages) {
            assert_eq!(back.unwrap(), *message, "{source}");
        }
    }
    // Passing over and keeping messages stops at the same places.
    for (source, read) in read_all::<IgnoredAny>(&bytes) {
        assert_eq!(read.iter().map(|(_, end)| *end).collect::<Vec<_>>(), ends, "{source}");
    }
    for (source, read) in read_all::<Box<RawValue>>(&bytes) {
        let joined: Vec<u8> =
            read.into_iter().flat_map(|(raw, _)| raw.unwrap().as_bytes().to_vec()).collect();
        assert!(joined == bytes, "{source}");
    }
    for (source, read) in read_all::<Value>(&bytes) {
        let values = read.into_iter().map(|(value, _)| value.unwrap()).collect::<Vec<_>>();
        assert!(written(&values) == bytes, "{source}");
    }
}

#[test]
fn a_stream_without_messages_just_ends() {
    for (source, read) in read_all::<u8>(&[]) {
        assert!(read.is_empty(), "{source}");
    }
}

#[test]
fn an_error_ends_the_stream() {
    for (bytes, category, good) in [
        ("01 ff 02", Category::Syntax, 1),
        ("01 02 1c 03", Category::Syntax, 2),
        ("01 6161 02", Category::Mismatch, 1),
        ("01 1901", Category::Eof, 1),
        ("6161", Category::Mismatch, 0),
    ] {
        for (source, read) in read_all::<u8>(&unhex(bytes)) {
            assert_eq!(read.len(), good + 1, "{bytes} from {source}");
            let error = read[good].0.as_ref().unwrap_err();
            assert_eq!(error.category(), category, "{bytes} from {source}: {error}");
            assert_eq!(error.offset(), Some(good as u64), "{bytes} from {source}: {error}");
            assert!(read[..good].iter().all(|(value, _)| value.is_ok()), "{source}");
        }
    }
}

#[test]
fn a_stream_cut_anywhere_gives_its_whole_messages_and_then_says_so() {
    let messages = &messages()[..5];
    let bytes = written(messages);
    let ends: Vec<usize> = messages
        .iter()
        .scan(0, |end, message| {
            *end += tenarc::to_vec(message).unwrap().len();
            Some(*end)
        })
        .collect();
    for cut in 0..bytes.len() {
        let whole = ends.iter().filter(|end| **end <= cut).count();
        let torn = cut != 0 && !ends.contains(&cut);
        for (source, read) in read_all::<Message>(&bytes[..cut]) {
            assert_eq!(read.len(), whole + usize::from(torn), "{source} cut at {cut}");
            for ((back, _), message) in read.iter().zip(messages).take(whole) {
                assert_eq!(back.as_ref().unwrap(), message, "{source} cut at {cut}");
            }
            if torn {
                let error = read[whole].0.as_ref().unwrap_err();
                assert_eq!(error.category(), Category::Eof, "{source} cut at {cut}: {error}");
                assert!(error.offset().unwrap() <= cut as u64, "{source} cut at {cut}: {error}");
            }
        }
    }
}

#[test]
fn a_large_message_cut_names_what_is_missing_alike_from_every_source() {
    let bytes = tenarc::to_vec(&("x".repeat(300_000), ByteBuf::from(vec![1; 400_000]))).unwrap();
    let error = refuse::<(String, ByteBuf)>(&bytes[..290_000]);
    assert_eq!(
        error.to_string(),
        "input ended, expected 300000 bytes of text string, found 289994 at `0` (byte 6)"
    );
    let error = refuse::<(String, ByteBuf)>(&bytes[..bytes.len() - 1]);
    assert!(error.to_string().contains("400000 bytes of byte string, found 399999"), "{error}");

    let tensor = Tensor(Array1::<f64>::zeros(200_000));
    let bytes = tenarc::to_vec(&(1, &tensor)).unwrap();
    let error = refuse::<(u8, Tensor<Array1<f64>>)>(&bytes[..1_500_000]);
    assert!(error.to_string().contains("expected 1600000 bytes of a tensor"), "{error}");
    assert_eq!(error.path(), "1");
}

#[test]
fn messages_of_several_types_in_turn() {
    let mut bytes = written(&[1u8, 2]);
    bytes.extend(written(&["a", "b"]));
    bytes.extend([0xff, 0x00]);
    let mut numbers = tenarc::Deserializer::from_reader(&bytes[..]).into_iter::<u8>();
    assert_eq!(numbers.next().unwrap().unwrap(), 1);
    assert_eq!(numbers.next().unwrap().unwrap(), 2);
    let mut texts = numbers.into_inner().into_iter::<String>();
    assert_eq!(texts.next().unwrap().unwrap(), "a");
    assert_eq!(texts.byte_offset(), 4);
    let mut deserializer = texts.into_inner();
    assert_eq!(String::deserialize(&mut deserializer).unwrap(), "b");
    assert_eq!(deserializer.end().unwrap_err().category(), Category::Syntax);
    assert_eq!(deserializer.byte_offset(), 6);
    let (rest, leftover) = deserializer.into_inner();
    assert_eq!((rest.len(), leftover), (0, vec![0xff, 0x00]));
}

#[test]
fn what_was_taken_too_early_is_given_back_with_the_reader() {
    fn rest_of<R: Read>(reader: R) -> (Vec<u8>, usize) {
        let mut deserializer = tenarc::Deserializer::from_reader(reader);
        for _ in 0..3 {
            Message::deserialize(&mut deserializer).unwrap();
        }
        let (mut reader, mut rest) = deserializer.into_inner();
        let taken = rest.len();
        reader.read_to_end(&mut rest).unwrap();
        (rest, taken)
    }

    let mut bytes = written(&messages()[..3]);
    let tail: Vec<u8> = (0..100_000u32).map(|i| i.to_le_bytes()[0]).collect();
    bytes.extend(&tail);
    let (rest, taken) = rest_of(&bytes[..]);
    assert!(rest == tail && taken > 0);
    let (rest, taken) = rest_of(OneByte(&bytes));
    assert!(rest == tail && taken == 0);
    assert!(rest_of(Ragged::new(&bytes, 3)).0 == tail);
}

#[test]
fn borrowed_messages_live_as_long_as_the_slice() {
    let bytes = written(&["first", "second"]);
    let all: Vec<&str> = {
        let stream = tenarc::Deserializer::from_slice(&bytes).into_iter::<&str>();
        stream.map(Result::unwrap).collect()
    };
    assert_eq!(all, ["first", "second"]);
}

#[test]
fn each_message_has_a_budget_and_a_depth_of_its_own() {
    type Row = (String, [u8; 1]);

    let limits = Limits::default().with_max_alloc(100).with_max_depth(2);
    let options = DecodeOptions::default().with_limits(limits);
    let bytes = written(&vec![("x".repeat(60), [[1]]); 20]);
    let read = tenarc::Deserializer::from_reader_with(&bytes[..], options).into_iter::<Row>();
    let error = read.last().unwrap().unwrap_err();
    assert_eq!(error.category(), Category::Mismatch, "a nested array is no number: {error}");

    let bytes = written(&vec![("x".repeat(60), [1]); 20]);
    let read = tenarc::Deserializer::from_reader_with(&bytes[..], options).into_iter::<Row>();
    assert_eq!(read.map(Result::unwrap).count(), 20);
    let bytes = written(&["x".repeat(60), "x".repeat(101), String::new()]);
    let mut read =
        tenarc::Deserializer::from_reader_with(&bytes[..], options).into_iter::<String>();
    assert!(read.next().unwrap().is_ok());
    assert_eq!(read.next().unwrap().unwrap_err().category(), Category::Limit);
    assert!(read.next().is_none());
}

/// Gives what it has, at most `step` bytes at a time, and then fails.
struct Ending<'a> {
    rest: &'a [u8],
    step: usize,
    kind: ErrorKind,
}

impl Read for Ending<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.rest.is_empty() {
            return Err(self.kind.into());
        }
        let len = out.len().min(self.step);
        self.rest.read(&mut out[..len])
    }
}

#[track_caller]
fn needs_no_more_than_itself<T>(value: &T)
where
    T: Serialize + DeserializeOwned + PartialEq + Debug,
{
    let packed = EncodeOptions::default().with_typed_arrays(true);
    for bytes in [tenarc::to_vec(value).unwrap(), tenarc::ser::to_vec_with(value, packed).unwrap()]
    {
        for step in [1, usize::MAX] {
            let reader = Ending { rest: &bytes, step, kind: ErrorKind::WouldBlock };
            let mut stream = tenarc::Deserializer::from_reader(reader).into_iter::<T>();
            let first = stream.next().unwrap();
            assert_eq!(first.unwrap_or_else(|e| panic!("{e}: {}", hex(&bytes))), *value);
            assert_eq!(stream.next().unwrap().unwrap_err().category(), Category::Io);
            assert!(stream.next().is_none());

            let reader = Ending { rest: &bytes, step, kind: ErrorKind::WouldBlock };
            let mut stream = tenarc::Deserializer::from_reader(reader).into_iter::<Value>();
            let value = stream.next().unwrap().unwrap();
            assert_eq!(tenarc::to_vec(&value).unwrap().len(), bytes.len());
            let reader = Ending { rest: &bytes, step, kind: ErrorKind::WouldBlock };
            let mut stream = tenarc::Deserializer::from_reader(reader).into_iter::<IgnoredAny>();
            assert!(stream.next().unwrap().is_ok());
        }
    }
}

#[test]
fn a_value_is_complete_when_its_last_byte_is_there() {
    // On a socket, waiting for one byte more would be waiting for ever.
    for message in &messages() {
        needs_no_more_than_itself(message);
    }
    needs_no_more_than_itself(&0u8);
    needs_no_more_than_itself(&u64::MAX);
    needs_no_more_than_itself(&u128::MAX);
    needs_no_more_than_itself(&0.5f32);
    needs_no_more_than_itself(&0.5f64);
    needs_no_more_than_itself(&());
    needs_no_more_than_itself(&String::new());
    needs_no_more_than_itself(&Vec::<u8>::new());
    needs_no_more_than_itself(&vec![1.5f64; 100]);
    needs_no_more_than_itself(&None::<u8>);
    needs_no_more_than_itself(&Some(()));
    needs_no_more_than_itself(&Some(Some(())));
    needs_no_more_than_itself(&Some(u128::MAX));
    needs_no_more_than_itself(&Some(Tensor(Array2::<u8>::zeros((1, 1)))));
    needs_no_more_than_itself(&Some(vec![1.5f64; 100]));
    needs_no_more_than_itself(&Tensor(Array2::<bool>::default((0, 3))));
    needs_no_more_than_itself(&Tensor(Array1::<u16>::zeros(40_000)));
    needs_no_more_than_itself(&Kind::Start);
    needs_no_more_than_itself(&Kind::Pair(1, 1.0));
}

#[test]
fn errors_of_the_reader_come_through_with_their_place() {
    let messages = &messages()[..4];
    let bytes = written(messages);
    let last = bytes.len() - tenarc::to_vec(&messages[3]).unwrap().len();
    for kind in [ErrorKind::WouldBlock, ErrorKind::TimedOut, ErrorKind::ConnectionReset] {
        for cut in last..bytes.len() {
            let reader = Ending { rest: &bytes[..cut], step: 5, kind };
            let mut stream = tenarc::Deserializer::from_reader(reader).into_iter::<Message>();
            for message in &messages[..3] {
                assert_eq!(stream.next().unwrap().unwrap(), *message);
            }
            let error = stream.next().unwrap().unwrap_err();
            assert_eq!(error.category(), Category::Io);
            assert_eq!(error.offset(), Some(cut as u64), "{error}");
            assert_eq!(io::Error::from(error).kind(), kind);
            assert!(stream.next().is_none());
        }
    }
    let mut deep = bytes[..last].to_vec();
    deep.extend(unhex("a1 6474616773 a1 6161"));
    let reader = Ending { rest: &deep, step: 3, kind: ErrorKind::TimedOut };
    let error = tenarc::Deserializer::from_reader(reader)
        .into_iter::<Message>()
        .last()
        .unwrap()
        .unwrap_err();
    assert_eq!(error.path(), "tags.a");
    let source = std::error::Error::source(&error).unwrap();
    assert_eq!(source.downcast_ref::<io::Error>().unwrap().kind(), ErrorKind::TimedOut);
}

#[test]
fn a_reader_that_claims_more_than_it_was_given_room_for_is_caught() {
    struct Liar<'a>(&'a [u8]);
    impl Read for Liar<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            match self.0.read(out)? {
                0 => Ok(out.len() + 1),
                n => Ok(n),
            }
        }
    }
    for bytes in [&[][..], &[0x82, 0x01], &[0x59, 0xff, 0xff, 1, 2, 3], &[0x5a, 0, 9, 0, 0, 1]] {
        let error = tenarc::from_reader::<_, Value>(Liar(bytes)).unwrap_err();
        assert_eq!(error.category(), Category::Io, "{error}");
        assert_eq!(io::Error::from(error).kind(), ErrorKind::InvalidData);
    }
    let tensor = tenarc::to_vec(&Tensor(Array1::<f32>::zeros(50_000))).unwrap();
    let error = tenarc::from_reader::<_, Tensor<Array1<f32>>>(Liar(&tensor[..150_000]));
    assert_eq!(error.unwrap_err().category(), Category::Io);
}

#[test]
fn bytes_behind_a_single_value_are_an_error() {
    let error = refuse::<u8>(&[0x01, 0x02]);
    assert_eq!((error.category(), error.offset()), (Category::Syntax, Some(1)));
    let reader = Ending { rest: &[0x01], step: 1, kind: ErrorKind::TimedOut };
    // Whether there are any is not known.
    assert_eq!(tenarc::from_reader::<_, u8>(reader).unwrap_err().category(), Category::Io);
}
