//! (e) encodes and decodes a save-game of nested enums, options and maps.
//!
//! It is modelled on the `minecraft_savedata` set of rust_serialization_benchmark, with more nesting: items
//! contain items, quests contain enums of every form, and there are maps with text keys and integer keys.
//! An `Option<Option<_>>` is never `Some(None)`, as most peers cannot distinguish it from `None`. bitcode's
//! own derives are missing, as they do not support recursive types.

mod borrowed;
mod owned;

use crate::data::Random;
use crate::harness::{Case, Effort, MESSAGES, Placed, Row, timed};
use crate::native::{bincode_row, rkyv_rows};
use crate::peers::{self, Codec, Lender, borrowed};
use crate::recorder::Recorder;
use crate::table::print_report;
use crate::targets::Targets;
use owned::{Abilities, Effect, Entity, Goal, Item, Mode, Player, Quest, SaveGame};

const PLAYERS: usize = 150;

const ITEMS: [&str; 10] = [
    "dirt",
    "stone",
    "pickaxe",
    "sand",
    "gravel",
    "shovel",
    "chestplate",
    "steak",
    "shulker_box",
    "torch",
];
const BEINGS: [&str; 7] = ["cow", "sheep", "zombie", "skeleton", "spider", "creeper", "parrot"];
const PLACES: [&str; 3] = ["overworld", "nether", "end"];

impl Random {
    fn option<T>(&mut self, chance: u64, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.chance(chance).then(|| make(self))
    }

    /// A coordinate in the world.
    fn place(&mut self) -> f64 {
        (self.unit() - 0.5) * 60_000.0
    }

    fn mode(&mut self) -> Mode {
        match self.below(4) {
            0 => Mode::Survival,
            1 => Mode::Creative,
            2 => Mode::Adventure,
            _ => Mode::Spectator,
        }
    }

    fn effect(&mut self) -> Effect {
        match self.below(4) {
            0 => Effect::Plain,
            1 => Effect::Burning(self.float()),
            2 => Effect::Poisoned { strength: self.below(5) as u8, seconds: self.float() },
            _ => Effect::Enchanted("sharpness".to_string(), self.below(1_000) as u16),
        }
    }

    /// An item with up to `depth` levels of items inside it.
    fn item(&mut self, depth: u32) -> Item {
        Item {
            id: format!("minecraft:{}", self.pick(&ITEMS)),
            count: self.between(1, 65) as i8,
            slot: self.below(36) as u8,
            damage: self.option(30, |r| r.below(1_500) as u16),
            effects: self.many(0, 3, Self::effect),
            contents: (depth > 0 && self.chance(40))
                .then(|| self.many(1, 5, |r| r.item(depth - 1))),
        }
    }

    fn entity(&mut self) -> Entity {
        Entity {
            id: format!("minecraft:{}", self.pick(&BEINGS)),
            position: (self.place(), self.unit() * 256.0, self.place()),
            motion: (self.unit() - 0.5, self.unit() - 0.5, self.unit() - 0.5),
            rotation: (self.float() * 180.0, self.float() * 90.0),
            fall_distance: self.float(),
            fire: self.below(300) as i16 - 20,
            air: self.below(300) as i16,
            on_ground: self.chance(80),
            uuid: [0; 4].map(|_: u32| self.bits() as u32),
            custom_name: self.option(30, |r| format!("{} the brave", r.pick(&BEINGS))),
            health: self.float() * 20.0,
        }
    }

    fn goal(&mut self) -> Goal {
        match self.below(4) {
            0 => Goal::Rest,
            1 => Goal::Reach((self.place() as i32, 64, self.place() as i32)),
            2 => {
                Goal::Collect { item: self.pick(&ITEMS).to_string(), count: self.below(100) as u32 }
            }
            _ => Goal::Defeat {
                kind: self.pick(&BEINGS).to_string(),
                weapon: self.option(50, |r| r.item(1)),
            },
        }
    }

    fn quest(&mut self) -> Quest {
        Quest {
            title: format!("the {} of the {}", self.pick(&ITEMS), self.pick(&BEINGS)),
            goals: self.many(1, 5, Self::goal),
            reward: self.option(60, |r| Some(r.item(1))),
            finished: self.option(50, |r| r.below(1 << 40)),
        }
    }

    fn player(&mut self) -> Player {
        Player {
            mode: self.mode(),
            previous_mode: self.option(50, Self::mode),
            score: self.below(1 << 40) as i64,
            dimension: self.pick(&PLACES).to_string(),
            selected: self.item(2),
            selected_slot: self.below(9) as u32,
            spawn: self.option(50, |r| (r.place() as i64, 64, r.place() as i64)),
            food_level: self.below(20) as u32,
            food_saturation: self.float() * 5.0,
            xp_level: self.below(100) as i32,
            xp_part: self.float(),
            inventory: self.many(10, 36, |r| r.item(3)),
            ender_chest: self.many(0, 27, |r| r.item(2)),
            abilities: Abilities {
                walk_speed: 0.1,
                fly_speed: 0.05,
                may_fly: self.chance(50),
                flying: self.chance(20),
                invulnerable: self.chance(10),
                may_build: self.chance(90),
                instabuild: self.chance(10),
            },
            vehicle: self.option(30, |r| ([0; 4].map(|_: u32| r.bits() as u32), r.entity())),
            left_shoulder: self.option(20, Self::entity),
            right_shoulder: self.option(20, Self::entity),
            recipes: self.many(10, 40, |r| format!("minecraft:{}", r.pick(&ITEMS))),
            quests: (0..self.between(2, 8)).map(|n| (format!("quest-{n}"), self.quest())).collect(),
            statistics: (0..self.between(10, 30))
                .map(|n| (format!("minecraft.{}.{n}", self.pick(&ITEMS)), self.below(100_000)))
                .collect(),
            visited: (0..self.between(10, 40))
                .map(|_| (self.below(100_000) as u32, self.below(500) as u16))
                .collect(),
        }
    }
}

fn plain<'a, C: Lender>(game: &'a SaveGame) -> Row<'a> {
    let row = peers::row::<C, _>("plain", game);
    // Both are compared as JSON values, in which the entries of hash maps are sorted.
    let whole = serde_json::to_value(game).unwrap();
    borrowed!(row, |bytes| C::lend::<borrowed::SaveGame>(bytes), |view| serde_json::to_value(view)
        .unwrap()
        == whole)
}

pub fn run(effort: Effort, recorder: &mut Recorder, targets: &mut Targets) {
    let mut random = Random::new(5);
    let game = &SaveGame {
        seed: random.bits() as i64,
        version: (1, 21),
        players: (0..PLAYERS).map(|_| random.player()).collect(),
    };

    let message = peers::Tenarc::to_vec(game);
    let message = message.as_slice();
    let floor = Row::new("floor", "", Placed::new(message, 0))
        .encode(move |buffer| buffer.extend_from_slice(message))
        .fresh(move || message.to_vec())
        .decode(move |_| timed(|| game.clone()));

    let mut rows = vec![
        floor,
        plain::<peers::Tenarc>(game),
        peers::row::<peers::TenarcColumns, _>("columns", game),
        plain::<peers::Cbor4ii>(game),
        plain::<peers::Minicbor>(game),
        plain::<peers::RmpNamed>(game),
        plain::<peers::RmpCompact>(game),
        peers::row::<peers::Ciborium, _>("plain", game),
        plain::<peers::Json>(game),
        plain::<peers::Bincode1>(game),
        plain::<peers::Bincode2>(game),
        plain::<peers::Postcard>(game),
        peers::zap("plain", game),
        plain::<peers::BitcodeSerde>(game),
        bincode_row!(game, SaveGame),
    ];
    rows.extend(rkyv_rows!(game, SaveGame));

    let report = Case {
        title: format!("(e) save-game: {PLAYERS} players, items in items, quests, maps"),
        heads: MESSAGES,
        floor: "encode, to_vec: memcpy of tenarc's message; decode: clone of the value",
        rows,
    }
    .run(effort);
    print_report(&report);
    recorder.keep("savegame", &report);
    targets.rows("e save-game", &report);
}
