import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

/** The application calls the partner. When the partner is away, the postback is lost. */
class Before {
    static final String PARTNER = System.getenv().getOrDefault("PARTNER", "https://partner.example/postback");

    public static void main(String[] args) throws Exception {
        var request = HttpRequest.newBuilder(URI.create(PARTNER + "?cid=a+b%20c"))
            .version(HttpClient.Version.HTTP_1_1)
            .header("Content-Type", "application/json")
            .POST(HttpRequest.BodyPublishers.ofString("{\"order\":42,\"amount\":\"9.90\"}"))
            .build();
        var response = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.discarding());
        if (response.statusCode() / 100 != 2) {
            throw new IllegalStateException("the postback failed: " + response.statusCode());
        }
    }
}
