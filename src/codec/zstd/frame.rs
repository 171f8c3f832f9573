//! The heads of frames and of their blocks.

use super::literals::MAX_BLOCK;

const MAGIC: [u8; 4] = 0xfd2f_b528_u32.to_le_bytes();
/// How far matches may reach back, in bytes. The RFC recommends that every decoder allows this much (3.1.1.1.2).
pub const MAX_WINDOW: u64 = 8 << 20;

/// The offset in a frame at which something is wrong, and what is wrong.
pub type Problem = (usize, &'static str);

/// The content of the head of a frame.
#[derive(Debug, Clone, Copy)]
pub struct Head {
    pub len: usize,
    /// The number of bytes that the frame decodes to.
    pub content: Option<u64>,
    /// The largest length of a block (RFC 8878, 3.1.1.2.3).
    pub max_block: usize,
}

impl Head {
    /// Reads the head of a frame (RFC 8878, 3.1.1.1).
    pub fn read(frame: &[u8]) -> Result<Head, Problem> {
        const CUT: Problem = (0, "the head of the frame is cut off");
        let rest = frame.strip_prefix(&MAGIC).ok_or((0, "this is not a zstd frame"))?;
        let (&descriptor, mut rest) = rest.split_first().ok_or(CUT)?;
        if descriptor & 0b1000 != 0 {
            return Err((4, "a reserved bit is set in the head of the frame"));
        }
        if descriptor & 0b100 != 0 {
            return Err((4, "the frame has a checksum, which no frame in an archive has"));
        }
        if descriptor & 0b11 != 0 {
            return Err((4, "the frame needs a dictionary, which no frame in an archive does"));
        }
        let single = descriptor & 0b10_0000 != 0;
        let mut window = None;
        if !single {
            let (&field, after) = rest.split_first().ok_or(CUT)?;
            let base = 1_u64 << (10 + (field >> 3));
            window = Some(base + base / 8 * u64::from(field & 7));
            rest = after;
        }
        let bytes = match descriptor >> 6 {
            0 => usize::from(single),
            other => 1 << other,
        };
        let (field, after) = rest.split_at_checked(bytes).ok_or(CUT)?;
        let mut content = [0; 8];
        content[..bytes].copy_from_slice(field);
        // A field of two bytes starts at 256.
        let content = u64::from_le_bytes(content).saturating_add(if bytes == 2 { 256 } else { 0 });
        // A frame without a field for the window has one of the size of its content.
        let window = window.unwrap_or(content);
        if window > MAX_WINDOW {
            return Err((5, "the frame needs a window of more than 8 MiB"));
        }
        Ok(Head {
            len: frame.len() - after.len(),
            content: (bytes > 0).then_some(content),
            max_block: (window as usize).min(MAX_BLOCK),
        })
    }

    /// Appends the head of a frame. `window` is how far matches can reach back; 0 if there are none.
    pub fn write(content: usize, window: usize, out: &mut Vec<u8>) {
        out.extend(MAGIC);
        // No window is smaller than a block. If the whole content is not larger, it is the window.
        let window = window.max(MAX_BLOCK);
        let single = content <= window;
        let field = (content as u64).to_le_bytes();
        match content {
            0..256 => out.extend([0x20, field[0]]),
            256..0x1_0100 => {
                out.push(0x60);
                out.extend(((content - 256) as u16).to_le_bytes());
            }
            // Planes have less than 4 GiB.
            _ => {
                out.push(if single { 0xa0 } else { 0x80 });
                if !single {
                    out.push((window.next_power_of_two().ilog2() as u8 - 10) << 3);
                }
                out.extend(&field[..4]);
            }
        }
    }
}

/// The head of a block (RFC 8878, 3.1.1.2).
#[derive(Debug, Clone, Copy)]
pub struct Block<'a> {
    pub last: bool,
    pub kind: u8,
    /// The length of a block of one repeated byte, otherwise that of the stored bytes.
    pub size: usize,
    /// The stored bytes.
    pub bytes: &'a [u8],
}

impl<'a> Block<'a> {
    pub const RAW: u8 = 0;
    pub const RLE: u8 = 1;
    pub const COMPRESSED: u8 = 2;

    /// Reads a block at the start of `rest`. `max` is the largest length of a block in this frame. Also returns the
    /// bytes after the block.
    pub fn read(rest: &'a [u8], max: usize) -> Result<(Block<'a>, &'a [u8]), &'static str> {
        const CUT: &str = "a block is cut off";
        let (&[a, b, c], rest) = rest.split_first_chunk().ok_or(CUT)?;
        let head = u32::from_le_bytes([a, b, c, 0]);
        let size = (head >> 3) as usize;
        let kind = (head >> 1 & 3) as u8;
        if kind == 3 {
            return Err("a block is of an unknown type");
        }
        if size > max {
            return Err("a block is larger than 128 KiB or than the window of its frame");
        }
        let stored = if kind == Block::RLE { 1 } else { size };
        let (bytes, rest) = rest.split_at_checked(stored).ok_or(CUT)?;
        Ok((Block { last: head & 1 == 1, kind, size, bytes }, rest))
    }

    pub fn write_head(last: bool, kind: u8, size: usize, out: &mut [u8]) {
        let head = u32::from(last) | u32::from(kind) << 1 | (size as u32) << 3;
        out[..3].copy_from_slice(&head.to_le_bytes()[..3]);
    }
}
