//! Pictures of tests/corpus were written by Pillow, see make.py there: 6 x 4 pixels, red is 40 across, green 60 down, blue 100.

use super::decode::{MOST_SIDE, Picture};
use super::*;
use crate::testing::{Random, records};
use std::io::Write;
use std::path::PathBuf;

/// A folder that is removed in the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("privfit-pictures-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    fn file(&self, name: &str, bytes: &[u8]) {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn seed(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/tests/corpus/picture/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// A PNG file of grey (one channel) or colours.
fn png(width: u32, height: u32, channels: usize, samples: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, width, height);
    encoder.set_color(if channels == 1 { png::ColorType::Grayscale } else { png::ColorType::Rgb });
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(samples).unwrap();
    writer.finish().unwrap();
    out
}

fn schema(shape: &str, more: &str) -> Schema {
    let text = "[dataset]\nname = \"t\"\n[target]\nclasses = [\"cat\", \"dog\"]\n[features]\nkind = \"image\"";
    Schema::parse(&format!("{text}\nshape = {shape}\nmax = 255\n{more}")).unwrap()
}

fn of(path: &Path, schema: &Schema) -> Vec<String> {
    let mut pictures = Pictures::open(path, schema).unwrap().unwrap();
    let out = records(&mut pictures).unwrap();
    assert_eq!(pictures.header_rows(), Some(out.len() as u64));
    out
}

/// Pixels of a file for a shape.
fn pixels(file: &[u8], shape: (usize, usize, usize)) -> Vec<f64> {
    let mut out = Vec::new();
    resized(&decode(file, None).unwrap(), shape, 255.0, &mut out);
    out
}

#[test]
fn every_kind_of_file_gives_its_pixels() {
    let colour = |y: usize, x: usize| [40.0 * x as f64, 60.0 * y as f64, 100.0];
    let grey = |c: [f64; 3]| 0.299 * c[0] + 0.587 * c[1] + 0.114 * c[2];
    let alpha = |x: usize| 1.0 - 40.0 * x as f64 / 255.0;
    for (name, seen_through, coloured, error) in [
        ("colour.png", false, true, 1e-9),
        ("palette.png", false, true, 1e-9),
        ("seen_through.png", true, true, 1e-9),
        ("grey.png", false, false, 0.5),
        ("wide.png", false, false, 0.5),
        ("grey_through.png", true, false, 0.5),
        ("colour.jpg", false, true, 8.0),
        ("progressive.jpg", false, true, 30.0),
        ("cmyk.jpg", false, true, 30.0),
        ("grey.jpg", false, false, 4.0),
    ] {
        let (three, one) = (pixels(&seed(name), (4, 6, 3)), pixels(&seed(name), (4, 6, 1)));
        for (y, x) in (0..24).map(|i| (i / 6, i % 6)) {
            let factor = if seen_through { alpha(x) } else { 1.0 };
            let wanted = if coloured { colour(y, x) } else { [grey(colour(y, x)); 3] }.map(|c| c * factor);
            for (c, wanted) in wanted.iter().enumerate() {
                let found = three[3 * (6 * y + x) + c];
                assert!((found - wanted).abs() <= error, "{name} {y} {x} {c}: {found} {wanted}");
            }
            let own = grey([three[3 * (6 * y + x)], three[3 * (6 * y + x) + 1], three[3 * (6 * y + x) + 2]]);
            assert!((one[6 * y + x] - own).abs() < 1e-9, "{name}");
        }
    }
    let two = pixels(&seed("two.png"), (4, 6, 1));
    assert!(two.iter().all(|x| *x == 0.0 || *x == 255.0) && two.contains(&0.0) && two.contains(&255.0));
}

/// Whatever is cut off is no picture, and neither is anything else.
#[test]
fn files_that_are_cut_are_broken() {
    for name in ["colour.jpg", "grey.jpg", "progressive.jpg", "colour.png", "palette.png"] {
        let whole = seed(name);
        for length in 0..whole.len() {
            let found = decode(&whole[..length], None);
            assert!(found.is_err(), "{name} at {length} of {}", whole.len());
        }
        // More than the picture is there, as some cameras have it.
        assert!(decode(&[&whole[..], b"more"].concat(), None).is_ok(), "{name}");
    }
    for other in [&b"GIF89a"[..], b"text", b"\xff\xd8", b"\x89PNG", b"\x89PNG\r\n\x1a\n", b""] {
        assert_eq!(decode(other, None), Err(Problem::Broken));
    }
}

/// The size that a header announces costs nothing, and one of another size is not unpacked.
#[test]
fn sizes_are_looked_at_first() {
    let mut jpeg = seed("colour.jpg");
    let frame = jpeg.windows(2).position(|w| w == [0xff, 0xc0]).unwrap();
    jpeg[frame + 5..frame + 9].copy_from_slice(&[0xff; 4]);
    assert_eq!(decode(&jpeg, None), Err(Problem::TooLarge));
    let mut header = seed("colour.png");
    for (side, problem) in
        [(MOST_SIDE as u32, Problem::TooLarge), (u32::MAX >> 1, Problem::TooLarge), (0, Problem::Broken), (7, Problem::Broken)]
    {
        header[16..20].copy_from_slice(&side.to_be_bytes());
        header[20..24].copy_from_slice(&side.to_be_bytes());
        let sum = flate2::Crc::new();
        let sum = [sum].map(|mut s| (s.update(&header[12..29]), s.sum()).1)[0];
        header[29..33].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(decode(&header, None), Err(problem), "{side}");
    }
    assert_eq!(decode(&header, Some((4, 6))), Err(Problem::WrongSize));
    assert!(decode(&seed("colour.png"), Some((4, 6))).is_ok());
    assert_eq!(decode(&seed("colour.jpg"), Some((6, 4))), Err(Problem::WrongSize));
}

fn gradient(height: usize, width: usize, value: impl Fn(usize, usize) -> u8) -> Picture {
    let samples: Vec<u8> = (0..height * width).map(|i| value(i / width, i % width)).collect();
    decode(&png(width as u32, height as u32, 1, &samples), None).unwrap()
}

fn small(picture: &Picture, height: usize, width: usize) -> Vec<f64> {
    let mut out = Vec::new();
    resized(picture, (height, width, 1), 255.0, &mut out);
    out
}

/// Closed forms: the mean of a ramp over an interval is its value in the middle of it, also where borders cut pixels.
#[test]
fn resizing_averages_the_area() {
    let close = |a: &[f64], b: &[f64]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9);
    // Blocks of 2 x 2.
    assert!(close(&small(&gradient(4, 4, |y, x| (4 * y + x) as u8), 2, 2), &[2.5, 4.5, 10.5, 12.5]));
    // 3 pixels to 2: one and a half each.
    let third = |a: f64, b: f64| (a + 0.5 * b) / 1.5;
    let found = small(&gradient(3, 3, |y, x| (10 * y * y + x * x) as u8), 2, 2);
    let (low, high) = ([0.0, 1.0, 4.0], [0.0, 10.0, 40.0]);
    let side = |v: [f64; 3]| [third(v[0], v[1]), third(v[2], v[1])];
    let wanted: Vec<f64> = side(high).iter().flat_map(|y| side(low).map(|x| x + y)).collect();
    assert!(close(&found, &wanted), "{found:?} {wanted:?}");
    // The crop is in the middle: of 3 x 8 pixels the 3 x 3 from column 2.5 to 5.5.
    assert!(close(&small(&gradient(3, 8, |_, x| 10 * x as u8), 1, 1), &[35.0]));
    assert!(close(&small(&gradient(8, 3, |y, _| 10 * y as u8), 1, 1), &[35.0]));
    // Shapes that are not square: 6 x 12 to 2 x 1 is the middle 6 x 3.
    assert!(close(&small(&gradient(6, 12, |y, x| (10 * y + x) as u8), 2, 1), &[10.0 + 5.5, 40.0 + 5.5]));
    // The same size is the same picture.
    let whole = gradient(5, 7, |y, x| (31 * y + x) as u8);
    assert_eq!(small(&whole, 5, 7), (0..35).map(|i| (31 * (i / 7) + i % 7) as f64).collect::<Vec<_>>());
    // Enlarging interpolates between the middles of pixels, and nothing lies outside.
    assert!(close(&small(&gradient(1, 2, |_, x| 100 * x as u8), 2, 4), &[0.0, 25.0, 75.0, 100.0, 0.0, 25.0, 75.0, 100.0]));
    assert!(close(&small(&gradient(1, 1, |_, _| 9), 3, 2), &[9.0; 6]));
}

/// Any size to any shape: a picture of one colour keeps it, values stay between the least and the largest, and the mean of a whole picture is kept.
#[test]
fn resizing_keeps_means() {
    let mut random = Random(77);
    for _ in 0..300 {
        let sides = [(); 4].map(|()| 1 + random.below(23));
        let samples: Vec<u8> = (0..sides[0] * sides[1]).map(|_| random.below(256) as u8).collect();
        let plain = small(&gradient(sides[0], sides[1], |_, _| 200), sides[2], sides[3]);
        assert!(plain.iter().all(|x| (x - 200.0).abs() < 1e-9), "{sides:?}");
        let picture = gradient(sides[0], sides[1], |y, x| samples[y * sides[1] + x]);
        assert!(small(&picture, sides[2], sides[3]).iter().all(|x| *x > -1e-9 && *x < 255.0 + 1e-9));
        let factor = 1 + random.below(4);
        let (height, width) = (factor * sides[2], factor * sides[3]);
        let samples: Vec<u8> = (0..height * width).map(|_| random.below(256) as u8).collect();
        let found = small(&gradient(height, width, |y, x| samples[y * width + x]), sides[2], sides[3]);
        let mean = |of: &mut dyn Iterator<Item = f64>, n: usize| of.sum::<f64>() / n as f64;
        let (a, b) =
            (mean(&mut found.iter().copied(), found.len()), mean(&mut samples.iter().map(|s| f64::from(*s)), samples.len()));
        assert!((a - b).abs() < 1e-9, "{sides:?} {factor}");
    }
}

fn packed(path: &Path, files: &[(&str, &[u8])], method: zip::CompressionMethod) {
    let mut writer = zip::ZipWriter::new(std::fs::File::create(path).unwrap());
    for (name, bytes) in files {
        writer.start_file(*name, zip::write::SimpleFileOptions::default().compression_method(method)).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap();
}

/// A folder and a zip file of it are the same records in the same order, whatever else is there.
#[test]
fn folders_and_zip_files_agree() {
    let here = Scratch::new("agree");
    let one = |x: u8| png(1, 1, 1, &[x]);
    let (a, b, c, d, e) = (one(1), one(2), one(3), one(4), one(5));
    let files: [(&str, &[u8]); 11] = [
        ("train/dog/2.PNG", &b),
        ("train/cat/10.png", &c),
        ("train/cat/9.png", &a),
        ("train/cat-like/x.png", &d),
        ("train/cat/deep/dog/y.jpeg", &e),
        ("train/dog/broken.jpg", b"text"),
        ("test/cat/1.png", &a),
        ("train/dog/notes.txt", b"text"),
        ("train/dog/.hidden.png", &a),
        ("train/.git/dog/1.png", &a),
        ("__MACOSX/train/dog/._2.png", &a),
    ];
    files.iter().for_each(|(name, bytes)| here.file(&format!("set/{name}"), bytes));
    let schema = schema("[1, 1]", "");
    let wanted = ["cat-like|4", "cat|3", "cat|1", "dog|5", "dog|2", "broken"];
    assert_eq!(of(&here.0.join("set/train"), &schema), wanted);
    for method in [zip::CompressionMethod::Stored, zip::CompressionMethod::Deflated] {
        let zip = here.0.join("set.zip");
        packed(&zip, &files, method);
        assert_eq!(of(&zip.join("train"), &schema), wanted);
        assert_eq!(of(&zip.join("train/"), &schema), wanted);
        assert_eq!(of(&zip, &schema), [&["cat|1"][..], &wanted].concat());
        assert_eq!(of(&zip.join("train/cat"), &schema), ["cat|3", "cat|1", "dog|5"]);
        // A folder, not the start of a name.
        assert_eq!(of(&zip.join("tra"), &schema).len(), 0);
        assert_eq!(container(&zip.join("train")), zip);
    }
    assert_eq!(of(&here.0.join("set"), &schema), [&["cat|1"][..], &wanted].concat());
    // The folder that is given has a name too.
    assert_eq!(of(&here.0.join("set/train/cat"), &schema), ["cat|3", "cat|1", "dog|5"]);
    assert_eq!(folders(&here.0.join("set/train")).unwrap().unwrap(), ["cat", "cat-like", "dog"]);
    assert!(!is_pictures(&here.0.join("set/train/cat/9.png")) && !is_pictures(&here.0.join("nothing")));
    assert!(Pictures::open(&here.0.join("set/train/cat/9.png"), &schema).unwrap().is_none());
}

/// One file changes in every way there is: its own record follows, and no other one.
#[test]
fn a_bad_picture_is_a_null_record_and_changes_nobody() {
    let here = Scratch::new("bad");
    let good: Vec<Vec<u8>> = (0..5).map(|x| png(2, 1, 3, &[x; 6])).collect();
    let schema = schema("[1, 2, 3]", "");
    let jpeg = seed("colour.jpg");
    let mut wrong_sum = good[2].clone();
    let end = wrong_sum.len();
    wrong_sum[end - 20] ^= 1;
    let bad: [&[u8]; 7] =
        [b"", b"text", &jpeg, &jpeg[..200], &good[2][..40], &wrong_sum, &[&good[2][..16], &[0x7f; 8], &good[2][24..]].concat()];
    for (i, bytes) in good.iter().enumerate() {
        here.file(&format!("set/dog/{i}.png"), bytes);
    }
    let zip = here.0.join("set.zip");
    let plain = of(&here.0.join("set"), &schema);
    assert_eq!(plain[2], "dog|2|2|2|2|2|2");
    for bytes in bad {
        here.file("set/dog/2.png", bytes);
        let list: Vec<(String, Vec<u8>)> =
            (0..5).map(|i| (format!("dog/{i}.png"), if i == 2 { bytes.to_vec() } else { good[i].clone() })).collect();
        let list: Vec<(&str, &[u8])> = list.iter().map(|(n, b)| (n.as_str(), b.as_slice())).collect();
        packed(&zip, &list, zip::CompressionMethod::Deflated);
        let mut found = of(&here.0.join("set"), &schema);
        assert_eq!(found, of(&zip, &schema));
        assert_eq!(std::mem::replace(&mut found[2], plain[2].clone()), "broken");
        assert_eq!(found, plain);
    }
    // A folder with the name of a picture is none, and what leads nowhere or never ends can't be read.
    here.file("set/dog/2.png", &good[2]);
    std::fs::create_dir(here.0.join("set/dog/9.png")).unwrap();
    std::os::unix::fs::symlink("nowhere", here.0.join("set/dog/5.png")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", here.0.join("set/dog/6.png")).unwrap();
    assert_eq!(of(&here.0.join("set"), &schema), [&plain[..], &["broken".into(), "broken".into()]].concat());
}

/// A zip file whose packed bytes are damaged loses the record that they are of.
#[test]
fn damage_inside_of_a_zip_file_is_one_record() {
    let here = Scratch::new("zip");
    let noise: Vec<u8> = (0..300u32).map(|i| (i * i * 7 + i / 3) as u8).collect();
    let files: Vec<(String, Vec<u8>)> = (0..3).map(|i| (format!("dog/{i}.png"), png(10, 10, 3, &noise))).collect();
    let files: Vec<(&str, &[u8])> = files.iter().map(|(n, b)| (n.as_str(), b.as_slice())).collect();
    let (zip, schema) = (here.0.join("set.zip"), schema("[10, 10, 3]", ""));
    packed(&zip, &files, zip::CompressionMethod::Deflated);
    let whole = std::fs::read(&zip).unwrap();
    let plain = of(&zip, &schema);
    let starts: Vec<usize> = memchr::memmem::find_iter(&whole, b"PK\x03\x04").collect();
    for at in (starts[1]..starts[2]).step_by(5) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x5a;
        std::fs::write(&zip, &bytes).unwrap();
        let found = of(&zip, &schema);
        assert!((&found[0], &found[2], found.len()) == (&plain[0], &plain[2], 3), "{at}");
        assert!(found[1] == "broken" || found[1] == plain[1], "{at}");
    }
    std::fs::write(&zip, &whole[..whole.len() / 2]).unwrap();
    let error = Pictures::open(&zip, &schema).err().unwrap().to_string();
    assert!(error.contains("not a whole zip file") && error.contains("pack it again"), "{error}");
}

#[test]
fn shapes_and_links_that_do_not_fit_are_refused_without_a_name() {
    let here = Scratch::new("refused");
    here.file("set/secret/1.png", &png(1, 1, 1, &[0]));
    for shape in ["[4]", "[3, 32, 32]", "[4, 4, 2]", "[4, 4, 4]", "[2, 2, 3, 1]"] {
        let error = Pictures::open(&here.0, &schema(shape, "")).err().unwrap().to_string();
        assert!(error.contains("[height, width, 3]"), "{error}");
    }
    let sparse =
        "[dataset]\nname = \"t\"\n[target]\nclasses = [0, 1]\n[features]\nkind = \"sparse\"\ndimension = 2\nrow_norm = 1.0";
    let error = Pictures::open(&here.0, &Schema::parse(sparse).unwrap()).err().unwrap().to_string();
    assert!(error.contains("kind = \"image\""), "{error}");
    std::os::unix::fs::symlink(here.0.join("set"), here.0.join("set/secret/hidden")).unwrap();
    let error = Pictures::open(&here.0, &schema("[1, 1]", "")).err().unwrap().to_string();
    assert!(error.contains("links to folders") && !error.contains("secret") && !error.contains("hidden"), "{error}");
}

/// Means and deviations of channels are public facts: pictures keep their size, and are pixels. What does not fit is refused with the fix.
#[test]
fn moments_of_channels_are_stated() {
    let text = |more: &str, encoding: &str| {
        format!(
            "[dataset]\nname = \"t\"\n[target]\nclasses = [0, 1]\n[features]\nkind = \"image\"\nshape = [8, 8, 2]\nmax = 255\n{more}\n{encoding}"
        )
    };
    let stated = Schema::parse(&text("mean = [120, 130.5]\ndeviation = [60, 70]", "")).unwrap();
    assert_eq!(stated.scaling, crate::schema::Scaling::Ball);
    let Features::Image { moments: Some(moments), encoder, .. } = &stated.features else { panic!() };
    assert_eq!((moments.mean.as_slice(), moments.deviation.as_slice()), ([120.0, 130.5].as_slice(), [60.0, 70.0].as_slice()));
    assert_eq!(*encoder, Some(crate::schema::ImageEncoder::Pixels));
    let plain = Schema::parse(&text("", "")).unwrap();
    assert!(plain.scaling == crate::schema::Scaling::Sphere && !serde_json::to_string(&plain).unwrap().contains("moments"));
    let read: Schema = serde_json::from_str(&serde_json::to_string(&stated).unwrap()).unwrap();
    assert_eq!(read, stated);
    for (more, encoding, why) in [
        ("mean = [120, 130]", "", "deviation"),
        ("deviation = [120, 130]", "", "mean"),
        ("mean = [120]\ndeviation = [60]", "", "a list of 2"),
        ("mean = [120, 300]\ndeviation = [60, 60]", "", "from 0 to 255"),
        ("mean = [120, 120]\ndeviation = [60, 0]", "", "from 0 to 255"),
        ("mean = [120, 120]\ndeviation = [60, 60]", "[encoding]\nscaling = \"sphere\"", "ball"),
        ("mean = [120, 120]\ndeviation = [60, 60]\nencoder = \"scattering\"", "", "pixels"),
    ] {
        let error = Schema::parse(&text(more, encoding)).unwrap_err().to_string();
        assert!(error.contains(why), "{more}: {error}");
    }
}

/// White is the largest pixel, and resizing is what the schema asks for.
#[test]
fn the_schema_decides() {
    let here = Scratch::new("schema");
    here.file("cat/1.png", &png(4, 2, 1, &[0, 255, 255, 0, 255, 0, 0, 255]));
    assert_eq!(of(&here.0, &schema("[1, 1]", "")), ["broken"]);
    assert_eq!(of(&here.0, &schema("[1, 1, 3]", "resize = true")), ["cat|127.5|127.5|127.5"]);
    let Features::Image { shape, .. } = schema("[2, 2]", "").features else { panic!() };
    let one = Schema {
        features: Features::Image { shape, max: 1.0, encoder: None, resize: true, moments: None },
        ..schema("[2, 2]", "")
    };
    assert_eq!(of(&here.0, &one), ["cat|1|1|0|0"]);
    let mut problems = Vec::new();
    let mut pictures = Pictures::open(&here.0, &schema("[1, 1]", "")).unwrap().unwrap();
    pictures.examine(&mut |path, folder, problem| problems.push((path.to_vec(), folder.to_vec(), problem)));
    assert_eq!(problems, [(b"cat/1.png".to_vec(), b"cat".to_vec(), Some(Problem::WrongSize))]);
}
