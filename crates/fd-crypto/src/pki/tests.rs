//! Keys, sessions, data and signatures against the reference's bytes, against OpenSSL, and against
//! damage.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use fd_records::{ContentCipher, DigestKind, DigestValue};
use openssl::asn1::Asn1Time;
use openssl::bn::{BigNum, BigNumRef};
use openssl::ec::{EcGroup, EcKey};
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::{PKey, Private};
use openssl::rsa::Rsa;
use openssl::x509::extension::SubjectKeyIdentifier;
use openssl::x509::{X509, X509NameBuilder};
use zeroize::Zeroizing;

use super::*;
use crate::Digester;

/// A certificate and its key as one PEM file, as `openssl req -x509 -nodes` makes them.
fn pem_of(key: &PKey<Private>, with_key_id: bool) -> Vec<u8> {
    let mut name = X509NameBuilder::new().unwrap();
    name.append_entry_by_text("CN", "test-fd").unwrap();
    let name = name.build();
    let mut builder = X509::builder().unwrap();
    builder.set_version(2).unwrap();
    builder.set_subject_name(&name).unwrap();
    builder.set_issuer_name(&name).unwrap();
    builder.set_pubkey(key).unwrap();
    builder.set_serial_number(&BigNum::from_u32(1).unwrap().to_asn1_integer().unwrap()).unwrap();
    builder.set_not_before(&Asn1Time::days_from_now(0).unwrap()).unwrap();
    builder.set_not_after(&Asn1Time::days_from_now(1).unwrap()).unwrap();
    if with_key_id {
        let extension = SubjectKeyIdentifier::new().build(&builder.x509v3_context(None, None)).unwrap();
        builder.append_extension(extension).unwrap();
    }
    builder.sign(key, MessageDigest::sha256()).unwrap();
    [builder.build().to_pem().unwrap(), key.private_key_to_pem_pkcs8().unwrap()].concat()
}

fn rsa() -> PKey<Private> {
    PKey::from_rsa(Rsa::generate(2048).unwrap()).unwrap()
}

fn pair() -> KeyPair {
    let pem = pem_of(&rsa(), true);
    KeyPair { certificate: Certificate::from_pem(&pem).unwrap(), private: PrivateKey::from_pem(&pem).unwrap() }
}

fn ring(own: &KeyPair) -> KeyRing {
    KeyRing { own: own.clone(), signers: Vec::new(), masters: Vec::new() }
}

/// With an opener that has opened no other record.
fn open(record: &[u8], keys: &KeyRing) -> Result<FileKey, SessionError> {
    SessionOpener::default().open(record, keys)
}

fn unhex(text: &str) -> Vec<u8> {
    text.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn decrypt(file_key: &FileKey, records: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut decryptor = Decryptor::new(file_key).unwrap();
    let mut blocks = Vec::new();
    let mut take = |decryptor: &mut Decryptor| {
        while let Some(block) = decryptor.next_block().unwrap() {
            blocks.push(block.to_vec());
        }
    };
    for record in records {
        decryptor.record(record).unwrap();
        take(&mut decryptor);
    }
    decryptor.finish().unwrap();
    take(&mut decryptor);
    assert_eq!(decryptor.pending(), 0);
    blocks
}

/// Reference 04 §12.5: what a stock daemon put on a volume.
#[test]
fn data_of_the_stock_daemon_is_decrypted_and_encrypts_to_the_same_bytes() {
    let cases = [
        (
            "a440738a8ef616f03888cdc5cb7d7892",
            "3cb1d858ae3c28583d31ca3771fa8431",
            vec!["9d6bc163c3cc900198515d962a76f11a", "7cbd1db27b63f9174a177ce4420c790c"],
            "48656c6c6f2c20426163756c61210a",
        ),
        (
            "a4ed96416e62b9857419ce811bb83e5f",
            "df14f0b7ac1e47cbf024576c90fd454c",
            vec!["c1ea96826b98e965f6662a0d83eef931", "ec3338be326c4b739e02404070b344f8"],
            "789cf348cdc9c9d751704a4c2ecd4954e40200286704b4",
        ),
        (
            "ca04c889b17637af3d71193fa9a7906f",
            "e80762fcdcc256341030b7853234dad4",
            vec![
                "3712eac343f58d6d273356832f2431d7f3a4cb2b0c634e32ea0170b2bab3ed15",
                "89f2d4f9e6fbeac21f577173a07c026b",
            ],
            "4c5a4f5800000013000000012048656c6c6f2c20426163756c61210a110000",
        ),
    ];
    for (key, iv, records, block) in cases {
        let file_key = FileKey { cipher: ContentCipher::Aes128, key: Zeroizing::new(unhex(key)), iv: unhex(iv) };
        let records: Vec<_> = records.into_iter().map(unhex).collect();
        assert_eq!(decrypt(&file_key, &records), [unhex(block)]);
        let mut encryptor = Encryptor::new().unwrap();
        encryptor.begin(&file_key).unwrap();
        let first = encryptor.block(&unhex(block)).unwrap().to_vec();
        assert_eq!([first, encryptor.finish().unwrap().to_vec()], records.as_slice());
    }
}

/// Reference 04 §8.8: a small block may yield no record, the last record is always one block of the
/// cipher.
#[test]
fn each_record_holds_the_whole_blocks_of_the_cipher_so_far() {
    let own = pair();
    let session = Session::new(ContentCipher::Aes256, ring(&own).recipients()).unwrap();
    let file_key = session.file_key(&session.new_iv().unwrap());
    let mut encryptor = Encryptor::new().unwrap();
    for (blocks, expected) in [
        (vec![65_536, 65_536, 18_928], vec![65_536, 65_536, 18_928, 16]),
        (vec![3, 5, 12], vec![0, 16, 16, 16]),
        (vec![12], vec![16, 16]),
        (vec![], vec![16]),
    ] {
        encryptor.begin(&file_key).unwrap();
        let blocks: Vec<Vec<u8>> = blocks.into_iter().map(|len: usize| vec![7; len]).collect();
        let mut records: Vec<_> = blocks.iter().map(|block| encryptor.block(block).unwrap().to_vec()).collect();
        records.push(encryptor.finish().unwrap().to_vec());
        assert_eq!(records.iter().map(Vec::len).collect::<Vec<_>>(), expected);
        assert_eq!(decrypt(&file_key, &records), blocks);
    }
}

/// OpenSSL 3 has it in the legacy provider only, which need not be installed.
#[test]
fn blowfish_encrypts_nothing_and_is_decrypted_where_the_legacy_provider_is() {
    let key = Zeroizing::new(unhex("000102030405060708090a0b0c0d0e0f"));
    let file_key = FileKey { cipher: ContentCipher::Blowfish, key, iv: unhex("0011223344556677") };
    let is_unsupported = |outcome: Result<(), DataError>| match outcome {
        Err(DataError::Cipher(errors)) => errors.lines().any(|line| line.contains("unsupported")),
        _ => false,
    };
    assert!(is_unsupported(Encryptor::new().unwrap().begin(&file_key)));
    // What `openssl enc -bf-cbc -provider legacy` makes of the block with its length.
    let record = unhex("5cb40188a82b43e415e095e6ff4bc7af9725b217980b73ac");
    if let Err(DataError::Cipher(errors)) = Decryptor::new(&file_key) {
        assert!(errors.lines().any(|line| line.contains("could not load")), "{errors}");
        return skip::test("the legacy provider of OpenSSL is not installed");
    }
    assert_eq!(decrypt(&file_key, &[record]), [b"Hello, Bacula!\n"]);
}

#[test]
fn each_recipient_opens_the_session_and_no_other_key_does() {
    let (own, master, other) = (pair(), pair(), pair());
    let keys = KeyRing { masters: vec![master.certificate.clone()], ..ring(&own) };
    for cipher in ContentCipher::ALL {
        let session = Session::new(cipher, keys.recipients()).unwrap();
        let iv = session.new_iv().unwrap();
        let mut record = Vec::new();
        session.record(&iv, &mut record);
        if cipher == ContentCipher::Aes128 {
            assert_eq!(record.len(), 640, "reference 04 §12.3");
            assert_eq!(record.get(..13).unwrap(), unhex("3082027c020100060960864801"));
        }
        let wanted = session.file_key(&iv);
        for keys in [ring(&own), ring(&master)] {
            let opened = open(&record, &keys).unwrap();
            assert_eq!((opened.cipher, &opened.key, &opened.iv), (cipher, &wanted.key, &wanted.iv));
        }
        assert!(matches!(open(&record, &ring(&other)), Err(SessionError::NoPrivateKey)));
        let helper = TrustedSigner { certificate: own.certificate.clone(), private: Some(own.private.clone()) };
        let with_helper = KeyRing { signers: vec![helper], ..ring(&other) };
        assert_eq!(open(&record, &with_helper).unwrap().key, wanted.key);
    }
}

/// Somebody has put the certificate of one pair and the key of another one into a file.
#[test]
fn a_key_that_is_not_that_of_its_certificate_hides_no_right_one() {
    let (host, master) = (pair(), pair());
    let keys = KeyRing { masters: vec![master.certificate.clone()], ..ring(&host) };
    let session = Session::new(ContentCipher::Aes128, keys.recipients()).unwrap();
    let iv = session.new_iv().unwrap();
    let mut record = Vec::new();
    session.record(&iv, &mut record);
    // In a record the recipients are in the order of the names of their keys: one of these two has
    // the wrong key before the right one.
    for (right, other) in [(&host, &master), (&master, &host)] {
        let mixed = KeyPair { certificate: other.certificate.clone(), private: right.private.clone() };
        let signer = |pair: &KeyPair| TrustedSigner {
            certificate: pair.certificate.clone(),
            private: Some(pair.private.clone()),
        };
        for keys in [
            KeyRing { signers: vec![signer(&mixed)], ..ring(right) },
            KeyRing { signers: vec![signer(right)], ..ring(&mixed) },
            KeyRing { signers: vec![signer(other)], ..ring(&mixed) },
        ] {
            assert_eq!(open(&record, &keys).unwrap().key, session.file_key(&iv).key);
        }
        // Alone it is as wrong as ever.
        let opened = open(&record, &ring(&mixed));
        assert!(opened.map_or(true, |opened| opened.key != session.file_key(&iv).key));
    }
}

#[test]
fn an_opener_decrypts_a_key_once_and_distinguishes_sessions() {
    let own = pair();
    let (keys, unable) = (ring(&own), ring(&with_wrong_exponents(&own)));
    let sessions = [(); 2].map(|()| Session::new(ContentCipher::Aes256, keys.recipients()).unwrap());
    let mut opener = SessionOpener::default();
    for round in 0..2 {
        for session in &sessions {
            for (keys, cost) in [(&keys, "decrypted"), (&unable, "remembered")] {
                let iv = session.new_iv().unwrap();
                let mut record = Vec::new();
                session.record(&iv, &mut record);
                let (got, wanted) = (opener.open(&record, keys).unwrap(), session.file_key(&iv));
                assert_eq!((got.key, got.iv), (wanted.key, wanted.iv), "{cost} in round {round}");
            }
        }
    }
    // A copy that is damaged is another one.
    let mut record = Vec::new();
    let [session, _] = &sessions;
    session.record(&session.new_iv().unwrap(), &mut record);
    opener.open(&record, &keys).unwrap();
    *record.last_mut().unwrap() ^= 1;
    assert!(
        opener.open(&record, &keys).map_or(true, |got| got.key != session.file_key(&session.new_iv().unwrap()).key)
    );
}

/// Equal files must not look equal (reference 04 §18.11).
#[test]
fn each_file_has_an_initialization_vector_of_its_own() {
    let session = Session::new(ContentCipher::Aes128, ring(&pair()).recipients()).unwrap();
    let (one, other) = (session.new_iv().unwrap(), session.new_iv().unwrap());
    assert_ne!(session.file_key(&one).iv, session.file_key(&other).iv);
}

#[test]
fn a_damaged_session_record_is_an_error() {
    let own = pair();
    let session = Session::new(ContentCipher::Aes128, ring(&own).recipients()).unwrap();
    let mut record = Vec::new();
    session.record(&session.new_iv().unwrap(), &mut record);
    assert_eq!(record.len(), 340, "reference 04 §12.3");
    for end in 0..record.len() {
        assert!(open(record.get(..end).unwrap(), &ring(&own)).is_err());
    }
    for place in 0..record.len() {
        let mut damaged = record.clone();
        damaged[place] ^= 0x41;
        // Whatever comes of it: a session that does not fit, or an error, but no panic.
        if let Ok(file_key) = open(&damaged, &ring(&own)) {
            let _fits_or_not = Decryptor::new(&file_key).is_ok();
        }
    }
    record.push(0);
    assert!(matches!(open(&record, &ring(&own)), Err(SessionError::Malformed(_))));
}

#[test]
fn damaged_data_is_an_error_and_makes_no_extra_data() {
    let session = Session::new(ContentCipher::Aes128, ring(&pair()).recipients()).unwrap();
    let file_key = session.file_key(&session.new_iv().unwrap());
    let mut encryptor = Encryptor::new().unwrap();
    encryptor.begin(&file_key).unwrap();
    let mut data = encryptor.block(&[1; 100]).unwrap().to_vec();
    data.extend_from_slice(encryptor.finish().unwrap());
    for place in 0..data.len() {
        for bit in 0..8 {
            let mut damaged = data.clone();
            damaged[place] ^= 1 << bit;
            let mut decryptor = Decryptor::new(&file_key).unwrap();
            decryptor.record(&damaged).unwrap();
            let mut came = Vec::new();
            while let Ok(Some(block)) = decryptor.next_block() {
                came.push(block.to_vec());
            }
            let finished = decryptor.finish().is_ok();
            while let Ok(Some(block)) = decryptor.next_block() {
                came.push(block.to_vec());
            }
            let whole = finished && decryptor.pending() == 0 && came == [vec![1; 100]];
            assert!(!whole, "byte {place} bit {bit}");
        }
    }
    // Cut off in the middle: the end is missed.
    let mut decryptor = Decryptor::new(&file_key).unwrap();
    decryptor.record(data.get(..33).unwrap()).unwrap();
    assert!(matches!(decryptor.finish(), Err(DataError::Data(_))));
}

fn digest(kind: DigestKind, data: &[u8]) -> DigestValue {
    let mut digester = Digester::new(kind).unwrap();
    digester.update(data);
    digester.finish().unwrap()
}

#[test]
fn signatures_are_those_that_openssl_verifies_and_cover_the_data() {
    let key = rsa();
    let pem = pem_of(&key, true);
    let own =
        KeyPair { certificate: Certificate::from_pem(&pem).unwrap(), private: PrivateKey::from_pem(&pem).unwrap() };
    let keys = ring(&own);
    for (kind, md, len) in [
        (DigestKind::Md5, MessageDigest::md5(), 321),
        (DigestKind::Sha1, MessageDigest::sha1(), 318),
        (DigestKind::Sha256, MessageDigest::sha256(), 322),
    ] {
        let mut signer = Signer::new(&own, kind).unwrap();
        let mut record = Vec::new();
        signer.record(&digest(kind, b"data"), &mut record).unwrap();
        assert_eq!(record.len(), len, "reference 04 §12.4");
        assert_eq!(signer.record_len(), len, "also before the first one");
        let signature = record.get(record.len() - 256..).unwrap();
        let mut verifier = openssl::sign::Verifier::new(md, &key).unwrap();
        verifier.update(b"data").unwrap();
        assert!(verifier.verify(signature).unwrap());

        let mut again = Vec::new();
        signer.record(&digest(kind, b"data"), &mut again).unwrap();
        assert_eq!(again, record);
        again.clear();
        let mut other = signer.another().unwrap();
        other.record(&digest(kind, b"data"), &mut again).unwrap();
        assert_eq!((&again, other.record_len()), (&record, len));
        again.clear();
        other.record(&digest(kind, b"other"), &mut again).unwrap();
        let parsed = Signature::parse(&again).unwrap();
        assert!(matches!(parsed.verify(&keys, |kind| Some(digest(kind, b"other"))), SignatureVerdict::Good), "made");

        let parsed = Signature::parse(&record).unwrap();
        assert_eq!(parsed.digest_kind(&keys), Some(kind));
        assert!(matches!(parsed.verify(&keys, |kind| Some(digest(kind, b"data"))), SignatureVerdict::Good));
        assert!(matches!(parsed.verify(&keys, |kind| Some(digest(kind, b"other"))), SignatureVerdict::Bad(_)));
        assert!(matches!(parsed.verify(&keys, |_| None), SignatureVerdict::NoDigest));
        assert!(matches!(parsed.verify(&ring(&pair()), |_| None), SignatureVerdict::UnknownSigner));
        for place in 0..record.len() {
            let mut damaged = record.clone();
            damaged[place] ^= 0x10;
            let Ok(parsed) = Signature::parse(&damaged) else { continue };
            let verdict = parsed.verify(&keys, |kind| Some(digest(kind, b"data")));
            // The second algorithm repeats the first: 9 bytes that are not read.
            let in_algorithm = (record.len() - 260 - 9..record.len() - 260).contains(&place);
            assert!(in_algorithm || !matches!(verdict, SignatureVerdict::Good), "byte {place} of {kind}");
        }
        for end in 0..record.len() {
            assert!(Signature::parse(record.get(..end).unwrap()).is_err());
        }
    }
    assert!(matches!(Signer::new(&own, DigestKind::Xxh64), Err(SigningError::Digest(DigestKind::Xxh64))));
}

/// Keeps everything.
#[derive(Debug, Default)]
struct Store(Mutex<BTreeMap<Vec<u8>, Vec<u8>>>);

impl SignatureStore for Store {
    fn find(&self, digest: &[u8], signature: &mut [u8]) -> bool {
        let store = self.0.lock().unwrap();
        let Some(known) = store.get(digest) else { return false };
        signature.copy_from_slice(known);
        true
    }

    fn keep(&self, digest: &[u8], signature: &[u8]) {
        self.0.lock().unwrap().insert(digest.to_vec(), signature.to_vec());
    }
}

/// The records of a job that signs these.
fn job(own: &KeyPair, kind: DigestKind, store: &Arc<Store>, contents: &[&[u8]]) -> Vec<Vec<u8>> {
    let mut signer = Signer::new(own, kind).unwrap();
    signer.use_store(Arc::<Store>::clone(store));
    let mut signers = [signer.another().unwrap(), signer];
    let record = |(at, content): (usize, &&[u8])| {
        let mut record = Vec::new();
        signers[at % 2].record(&digest(kind, content), &mut record).unwrap();
        record
    };
    contents.iter().enumerate().map(record).collect()
}

/// The same pair, but what it signs is wrong.
fn with_wrong_exponents(pair: &KeyPair) -> KeyPair {
    let rsa = pair.private.key().rsa().unwrap();
    let own = |number: Option<&BigNumRef>| number.unwrap().to_owned().unwrap();
    let three = || BigNum::from_u32(3).unwrap();
    let (modulus, public, inverse) = (own(Some(rsa.n())), own(Some(rsa.e())), own(rsa.iqmp()));
    let (p, q) = (own(rsa.p()), own(rsa.q()));
    let wrong = Rsa::from_private_components(modulus, public, three(), p, q, three(), three(), inverse).unwrap();
    let private = PrivateKey::from_pem(&wrong.private_key_to_pem().unwrap()).unwrap();
    KeyPair { private, certificate: pair.certificate.clone() }
}

#[test]
fn signatures_of_an_earlier_job_are_used_if_they_are_valid_and_of_this_key() {
    let own = pair();
    let contents: [&[u8]; 3] = [b"one", b"two", b"three"];
    for kind in DigestKind::SIGNED {
        let store = Arc::<Store>::default();
        let made = job(&own, kind, &store, &contents);
        let unable = with_wrong_exponents(&own);
        assert_eq!(job(&unable, kind, &store, &contents), made, "found");
        assert_ne!(job(&unable, kind, &Arc::default(), &contents), made, "made");

        let others = job(&pair(), kind, &store, &contents);
        assert!(others.iter().zip(&made).all(|(other, made)| other != made));
        assert_eq!(job(&own, kind, &store, &contents), made, "instead of another key's");

        for bit in (0..2048).step_by(61) {
            for signature in store.0.lock().unwrap().values_mut() {
                signature[bit / 8] ^= 1 << (bit % 8);
            }
            assert_eq!(job(&own, kind, &store, &contents), made, "bit {bit}");
            assert_eq!(job(&unable, kind, &store, &contents), made, "bit {bit} is mended");
        }
    }
}

#[test]
fn key_files_are_refused_with_the_reason() {
    let key = rsa();
    let lines = |pem: &[u8]| Certificate::from_pem(pem).map(|_| ()).unwrap_err().lines();
    assert!(lines(b"nothing").first().unwrap().starts_with("Unable to read certificate from file: ERR=error:"));
    assert_eq!(
        lines(&pem_of(&key, false)),
        ["Provided certificate does not include the required subjectKeyIdentifier extension."]
    );
    let curve = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).unwrap();
    let elliptic = PKey::from_ec_key(EcKey::generate(&curve).unwrap()).unwrap();
    assert_eq!(lines(&pem_of(&elliptic, true)), ["Unsupported key type provided: 408"]);
    let locked = key.private_key_to_pem_pkcs8_passphrase(openssl::symm::Cipher::aes_128_cbc(), b"secret").unwrap();
    for pem in [b"nothing".to_vec(), locked] {
        let lines = PrivateKey::from_pem(&pem).unwrap_err().lines();
        assert!(lines.first().unwrap().starts_with("Unable to read private key from file: ERR=error:"), "{lines:?}");
    }
    assert_eq!(format!("{:?}", PrivateKey::from_pem(&pem_of(&key, true)).unwrap()), "PrivateKey(…)");
}
