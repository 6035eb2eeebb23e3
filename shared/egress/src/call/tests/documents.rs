//! Documents as bodies, which never enter the module (AL-078, AL-244 to AL-253, AL-257).

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream;

use super::*;
use crate::vendor::ByteStream;

/// A folder with one document of this content.
struct Folder {
    content: Bytes,
    reads: AtomicUsize,
}

#[async_trait]
impl Documents for Folder {
    async fn find(&self, id: &str) -> Result<Document, String> {
        if id != "doc-1" {
            return Err("document not available".into());
        }
        self.reads.fetch_add(1, Ordering::AcqRel);
        let (content, length) = (self.content.clone(), self.content.len());
        let open = move || -> ByteStream {
            let content = content.clone();
            let piece = move |at| content.slice(at..content.len().min(at + (1 << 16)));
            Box::pin(stream::iter((0..length).step_by(1 << 16).map(move |at| Ok(piece(at)))))
        };
        Ok(Document {
            content_type: "image/png".into(),
            filename: "scan \"1\".png".into(),
            length: length as u64,
            open: Arc::new(open),
        })
    }
}

fn scene(length: usize) -> (Scene, Arc<Folder>) {
    scene_with(Bytes::from(vec![b'd'; length]))
}

fn scene_with(content: Bytes) -> (Scene, Arc<Folder>) {
    let folder = Arc::new(Folder { content, reads: AtomicUsize::new(0) });
    let documents = Some(Arc::clone(&folder) as Arc<dyn Documents>);
    (Scene::given(Given { documents, ..Given::default() }), folder)
}

// covers: AL-161, AL-245, AL-246, AL-257
#[tokio::test]
async fn document_is_streamed_with_its_type() {
    let (scene, _folder) = scene(20 << 20);
    let body = json!({"method": "PUT", "body": {"document": "doc-1"}});
    let sent = scene.sends(&to_vendor(body)).await;
    assert_eq!(sent.header("content-type"), Some("image/png"));
    assert_eq!(sent.header("content-length"), Some("20971520"));
    assert!(sent.is_streamed);
    assert!(sent.body.iter().all(|&byte| byte == b'd'));
    let own = json!({"headers": {"content-type": "x/y"}, "body": {"document": "doc-1"}});
    assert_eq!(scene.sends(&to_vendor(own)).await.header("content-type"), Some("x/y"));
}

// covers: AL-249
#[tokio::test]
async fn nothing_of_a_document_reaches_the_module() {
    let (scene, _folder) = scene(1 << 20);
    let sign = json!({"header": "x-s", "algorithm": "sha256", "key": {"text": "k"}});
    let body = json!({"method": "POST", "body": {"document": "doc-1"}, "sign": sign});
    let answered = scene.ask(&to_vendor(body)).await;
    assert_eq!(scene.sent().remove(0).body.len(), 1 << 20);
    assert_eq!(answered["status"], 204);
    assert!(!answered.to_string().contains("ddd"), "{answered}");
}

// covers: AL-078
#[tokio::test]
async fn nothing_is_filled_in_a_document() {
    let content = "{{secret:apiKey}} {{secret:apiKey:AAAAAAAAAAAAAAAAAAAAAA}}";
    let (scene, _folder) = scene_with(Bytes::from_static(content.as_bytes()));
    let sent = scene.sends(&to_vendor(json!({"body": {"document": "doc-1"}}))).await;
    assert_eq!(sent.text(), content);
    let part = json!({"body": {"multipart": [{"name": "a", "document": "doc-1"}]}});
    let sent = scene.sends(&to_vendor(part)).await;
    assert!(sent.text().contains(&format!("\r\n\r\n{content}\r\n")), "{}", sent.text());
}

// covers: AL-252, AL-253, AL-386
#[tokio::test]
async fn document_is_a_part_under_its_own_name_or_another() {
    let (scene, _folder) = scene(3);
    let parts = json!([
        {"name": "a", "document": "doc-1"},
        {"name": "b", "document": "doc-1", "filename": "b.bin"},
    ]);
    let sign = json!({"header": "x-s", "algorithm": "sha256", "key": {"text": "k"}});
    let request = json!({"method": "POST", "body": {"multipart": parts}, "sign": sign});
    let sent = scene.sends(&to_vendor(request)).await;
    let text = sent.text();
    assert!(
        text.contains(
            "name=\"a\"; filename=\"scan %221%22.png\"\r\nContent-Type: image/png\r\n\r\nddd\r\n"
        ),
        "{text}"
    );
    assert!(text.contains("name=\"b\"; filename=\"b.bin\"\r\n"), "{text}");
    let expected = crate::hmac::sign(
        crate::hmac::HmacAlgorithm::Sha256,
        b"k",
        &sent.body,
        crate::hmac::SignatureEncoding::Hex,
    );
    assert_eq!(sent.header("x-s"), Some(expected.as_str()));
}

// covers: AL-244, AL-247, AL-248
#[tokio::test]
async fn document_that_is_not_the_calls_is_refused() {
    let body = |id: &str| to_vendor(json!({"body": {"document": id}}));
    refused(body("doc-1"), "documents are not available to this call").await;
    let (scene, _folder) = scene(3);
    let answered = scene.ask(&body("of-another")).await;
    assert_eq!(answered, json!({"error": "document not available"}));
    assert_eq!(scene.sent(), []);
}

// Ten reads pass, the eleventh does not.
#[tokio::test]
async fn call_reads_ten_documents() {
    let (scene, folder) = scene(1);
    let part = json!({"name": "n", "document": "doc-1"});
    let parts = |count: usize| to_vendor(json!({"body": {"multipart": vec![part.clone(); count]}}));
    assert_eq!(scene.ask(&parts(10)).await["status"], 204);
    let over = json!({"error": "document read limit of 10 per call reached"});
    assert_eq!(scene.ask(&parts(1)).await, over);
    assert_eq!(folder.reads.load(Ordering::Acquire), 10);
}

// What a signature covers is read into memory, up to 64 MiB.
#[tokio::test]
async fn signed_document_is_bounded() {
    let sign = json!({"header": "x", "algorithm": "sha1", "key": {"text": "k"}});
    let request = to_vendor(json!({"body": {"document": "doc-1"}, "sign": sign}));
    let (at_most, _folder) = scene(64 << 20);
    assert_eq!(at_most.ask(&request).await["status"], 204);
    let (over, _folder) = scene((64 << 20) + 1);
    let text = "a body over 67108864 bytes cannot be signed";
    assert_eq!(over.ask(&request).await, json!({"error": text}));
    assert_eq!(over.sent(), []);
}
