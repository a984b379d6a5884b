{ base, merge, ... }: {
  after = merge base {
    services.wiki.sso.redirectURIs = [ "https://wiki.example.org/callback2" ];
    services.wiki.upstream = "127.0.0.1:8081";
  };
}
