# The static binary alone on an empty image, as a user that is not root.
#
#   docker build -t postern .
#   docker run --network container:app -v postern-data:/data postern
#
# The listeners are loopback inside the container by default, which is what a sidecar that shares its application's
# network wants (--network container:app, network_mode "service:app", or a pod; --network host on a machine of one's
# own). A port that is published (-p) does not reach them: for that configure `listen` with a `token_file`.

FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download && go mod verify
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X postern/proxy/cli.Version=${VERSION}" -o /out/postern . \
 && mkdir -p /out/data

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/postern /postern
COPY --from=build --chown=65532:65532 /out/data /data
USER 65532:65532
ENV POSTERN_DATA=/data
VOLUME /data
EXPOSE 8089 8090
HEALTHCHECK --interval=10s --timeout=3s CMD ["/postern", "healthcheck"]
ENTRYPOINT ["/postern"]
CMD ["run"]
