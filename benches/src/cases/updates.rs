//! (l) encodes and decodes 1,000 updates of a game server.
//!
//! The types, the number of updates and the ranges of values are those of the `mk48` set of
//! rust_serialization_benchmark: small integers, options, short vectors of bools and integers, and nested
//! structs. The code is tenarc's own.

use crate::data::Random;
use crate::harness::{Case, Column, Effort, MESSAGES, Placed, Row, timed};
use crate::native::{bincode_row, bitcode_row, rkyv_rows, types, wincode_row};
use crate::peers::{self, Codec};
use crate::recorder::Recorder;
use crate::table::print_report;
use crate::targets::Targets;

const COUNT: usize = 1_000;

types! {
    #[derive(Copy)]
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

/// A kind of ship: how frequent it is, and its numbers of weapons and turrets.
const SHIPS: [(EntityType, u64, u64, u64); 10] = [
    (EntityType::ArleighBurke, 214, 20, 1),
    (EntityType::Bismarck, 52, 10, 4),
    (EntityType::Clemenceau, 97, 16, 4),
    (EntityType::Fletcher, 146, 18, 4),
    (EntityType::G5, 1_316, 2, 0),
    (EntityType::Iowa, 155, 28, 3),
    (EntityType::Kolkata, 83, 15, 1),
    (EntityType::Osa, 725, 6, 2),
    (EntityType::Yasen, 406, 14, 0),
    (EntityType::Zubr, 1_292, 11, 3),
];

impl Random {
    fn ship(&mut self) -> (EntityType, u64, u64) {
        let mut at = self.below(SHIPS.iter().map(|ship| ship.1).sum());
        for (kind, frequency, weapons, turrets) in SHIPS {
            if at < frequency {
                return (kind, weapons, turrets);
            }
            at -= frequency;
        }
        unreachable!("the number is less than the sum")
    }

    fn velocity(&mut self) -> i16 {
        match self.below(10) {
            0..8 => self.between(140, 900) as i16,
            8 => 0,
            _ => -(self.between(36, 226) as i16),
        }
    }

    /// Only submarines submerge.
    fn submerged(&mut self, kind: EntityType) -> bool {
        kind == EntityType::Yasen && self.chance(90)
    }

    fn contact(&mut self, players: u64) -> Contact {
        let (kind, weapons, turrets) = self.ship();
        let visible = self.chance(70);
        let (weapons, turrets) = if visible { (weapons, turrets) } else { (0, 0) };
        let loaded = self.below(101);
        let ahead = self.bits() as u16;
        Contact {
            damage: if visible && self.chance(60) { 0 } else { self.below(200) as u8 },
            entity_id: self.below(20 * players) as u32,
            entity_type: visible.then_some(kind),
            guidance: Guidance {
                angle: self.bits() as u16,
                submerge: self.submerged(kind),
                velocity: self.velocity(),
            },
            player_id: visible.then(|| self.below(players) as u16),
            reloads: (0..weapons).map(|_| self.chance(loaded)).collect(),
            transform: Transform {
                altitude: if self.submerged(kind) { -(self.between(36, 121) as i8) } else { 0 },
                angle: self.bits() as u16,
                position: (self.float() * 750.0, self.float() * 750.0),
                velocity: self.velocity(),
            },
            turret_angles: (0..turrets)
                .map(|_| {
                    let turned =
                        if self.chance(75) { self.below(400) as u16 } else { self.bits() as u16 };
                    ahead.wrapping_add(turned)
                })
                .collect(),
        }
    }

    fn update(&mut self) -> Update {
        let players = self.between(200, 400);
        let world_radius = (players as f32 * 15_000.0).sqrt() + self.float() * 50.0;
        let chunks = (world_radius / 1_600.0).ceil() as u64;
        Update {
            contacts: self.many(20, 40, |random| random.contact(players)),
            score: (self.unit().powi(4) * 5_000.0) as u32 + self.below(50) as u32,
            world_radius,
            terrain_updates: self.many(3, 10, |random| {
                let mut chunk = || random.below(2 * chunks) as i8 - chunks as i8;
                let chunk_id = (chunk(), chunk());
                // Few chunks are new and whole.
                let (least, most) = if random.chance(2) { (900, 1_100) } else { (3, 9) };
                TerrainUpdate {
                    chunk_id,
                    data: random.many(least, most, |random| random.bits() as u8),
                }
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
        peers::zap("plain", updates),
        peers::row::<peers::BitcodeSerde, _>("plain", updates),
        bincode_row!(updates, Updates),
        wincode_row!(updates, Updates),
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
    let case = "l updates";
    targets.rows(case, &report);
    targets.columns(case, &report, (Column::ToVec, "bitcode", "plain"), 2.0);
    targets.aim(1.3);
    targets.columns(case, &report, (Column::Decode, "bincode 1", "plain"), 2.1);
    targets.columns_size(case, &report, "bitcode", 1.35);
    targets.aim(1.15);
}
