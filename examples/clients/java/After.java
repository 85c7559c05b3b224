import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

/** The application hands the postback to Postern. A 202 means that it is on disk. */
class After {
    static final String PARTNER = System.getenv().getOrDefault("PARTNER", "https://partner.example/postback");
    static final String POSTERN = System.getenv().getOrDefault("POSTERN", "http://localhost:8089/");

    public static void main(String[] args) throws Exception {
        var request = HttpRequest.newBuilder(URI.create(POSTERN + PARTNER + "?cid=a+b%20c"))
            .version(HttpClient.Version.HTTP_1_1)
            .header("Content-Type", "application/json")
            .header("Idempotency-Key", "order-42")
            .POST(HttpRequest.BodyPublishers.ofString("{\"order\":42,\"amount\":\"9.90\"}"))
            .build();
        var response = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.discarding());
        if (response.statusCode() / 100 != 2) {
            throw new IllegalStateException("the postback failed: " + response.statusCode());
        }
    }
}
