//! (l) encodes and decodes 1,000 updates of a game server.
//!
//! The types are those of the `mk48` set of rust_serialization_benchmark: small integers, options, short
//! vectors of bools and integers, and nested structs. The values are generated here.

use crate::data::Random;
use crate::harness::{Case, Column, Effort, MESSAGES, Placed, Row, timed};
use crate::native::{bincode_row, bitcode_row, rkyv_rows};
use crate::peers::{self, Codec};
use crate::recorder::Recorder;
use crate::table::print_report;
use crate::targets::Targets;

const COUNT: usize = 1_000;

macro_rules! types {
    ($($item:item)*) => {$(
        #[derive(
            Clone,
            PartialEq,
            serde::Serialize,
            serde::Deserialize,
            bincode::Encode,
            bincode::Decode,
            bitcode::Encode,
            bitcode::Decode,
            rkyv::Archive,
            rkyv::Serialize,
            rkyv::Deserialize,
        )]
        $item
    )*};
}

types! {
    enum EntityType {
        ArleighBurke,
        Bismarck,
        Clemenceau,
        Fletcher,
        G5,
        Iowa,
        Kolkata,
        Osa,
        Yasen,
        Zubr,
    }

    struct Transform {
        altitude: i8,
        angle: u16,
        position: (f32, f32),
        velocity: i16,
    }

    struct Guidance {
        angle: u16,
        submerge: bool,
        velocity: i16,
    }

    struct Contact {
        damage: u8,
        entity_id: u32,
        entity_type: Option<EntityType>,
        guidance: Guidance,
        player_id: Option<u16>,
        reloads: Vec<bool>,
        transform: Transform,
        turret_angles: Vec<u16>,
    }

    struct TerrainUpdate {
        chunk_id: (i8, i8),
        data: Vec<u8>,
    }

    struct Update {
        contacts: Vec<Contact>,
        score: u32,
        world_radius: f32,
        terrain_updates: Vec<TerrainUpdate>,
    }

    struct Updates {
        updates: Vec<Update>,
    }
}

impl Random {
    fn entity_type(&mut self) -> EntityType {
        match self.below(10) {
            0 => EntityType::ArleighBurke,
            1 => EntityType::Bismarck,
            2 => EntityType::Clemenceau,
            3 => EntityType::Fletcher,
            4 => EntityType::G5,
            5 => EntityType::Iowa,
            6 => EntityType::Kolkata,
            7 => EntityType::Osa,
            8 => EntityType::Yasen,
            _ => EntityType::Zubr,
        }
    }

    fn velocity(&mut self) -> i16 {
        if self.chance(10) {
            -(self.between(35, 225) as i16)
        } else {
            self.between(140, 900) as i16
        }
    }

    fn contact(&mut self) -> Contact {
        Contact {
            damage: (self.unit().powi(4) * 200.0) as u8,
            entity_id: self.bits() as u32,
            entity_type: self.chance(90).then(|| self.entity_type()),
            guidance: Guidance {
                angle: self.bits() as u16,
                submerge: self.chance(10),
                velocity: self.velocity(),
            },
            player_id: self.chance(30).then(|| self.below(400) as u16),
            reloads: self.many(0, 20, |random| random.chance(90)),
            transform: Transform {
                altitude: if self.chance(10) { -(self.between(35, 120) as i8) } else { 0 },
                angle: self.bits() as u16,
                position: (self.float() * 2_000.0, self.float() * 2_000.0),
                velocity: self.velocity(),
            },
            turret_angles: self.many(0, 5, |random| random.bits() as u16),
        }
    }

    fn update(&mut self) -> Update {
        Update {
            contacts: self.many(20, 40, Self::contact),
            score: (self.unit().powi(4) * 5_000.0) as u32,
            world_radius: 2_000.0 + self.float() * 50.0,
            terrain_updates: self.many(3, 10, |random| TerrainUpdate {
                chunk_id: (random.between(0, 5) as i8 - 2, random.between(0, 5) as i8 - 2),
                data: random.many(16, 64, |random| random.bits() as u8),
            }),
        }
    }
}

pub fn run(effort: Effort, recorder: &mut Recorder, targets: &mut Targets) {
    let mut random = Random::new(6);
    let updates = &Updates { updates: (0..COUNT).map(|_| random.update()).collect() };

    let message = peers::Tenarc::to_vec(updates);
    let message = message.as_slice();
    let floor = Row::new("floor", "", Placed::new(message, 0))
        .encode(move |buffer| buffer.extend_from_slice(message))
        .fresh(move || message.to_vec())
        .decode(move |_| timed(|| updates.clone()));
    let mut rows = vec![
        floor,
        peers::row::<peers::Tenarc, _>("plain", updates),
        peers::row::<peers::TenarcColumns, _>("columns", updates),
        peers::row::<peers::Cbor4ii, _>("plain", updates),
        peers::row::<peers::Minicbor, _>("plain", updates),
        peers::row::<peers::RmpNamed, _>("plain", updates),
        peers::row::<peers::RmpCompact, _>("plain", updates),
        peers::row::<peers::Ciborium, _>("plain", updates),
        peers::row::<peers::Json, _>("plain", updates),
        peers::row::<peers::Bincode1, _>("plain", updates),
        peers::row::<peers::Bincode2, _>("plain", updates),
        peers::row::<peers::Postcard, _>("plain", updates),
        peers::row::<peers::BitcodeSerde, _>("plain", updates),
        bincode_row!(updates, Updates),
        bitcode_row!(updates, Updates),
    ];
    rows.extend(rkyv_rows!(updates, Updates));

    let report = Case {
        title: format!("(l) updates: {COUNT} updates of small integers and nested structs"),
        heads: MESSAGES,
        floor: "encode, to_vec: memcpy of tenarc's message; decode: clone of the value",
        rows,
    }
    .run(effort);
    print_report(&report);
    recorder.keep("updates", &report);
    targets.plain_derives("l updates", &report, &[Column::Encode, Column::Decode]);
    targets.columns(
        "l updates",
        &report,
        &[(Column::ToVec, "bitcode", "plain", 2.0), (Column::Decode, "bincode 1", "plain", 2.1)],
        ("bitcode", "plain", 1.35),
    );
}
