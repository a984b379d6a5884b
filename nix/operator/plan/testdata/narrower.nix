# Shorter lifetimes and fewer redirect URIs open nothing.
{ base, merge, ... }: rec {
  before = merge base {
    providers.config.hosts = [ "alpha" ];
    services.wiki.sso.redirectURIs = [
      "https://a.example.org/"
      "https://b.example.org/"
    ];
  };
  after = merge before {
    providers = {
      config.interval = 60;
      cert.lifetime = 3600;
    };
    services.wiki.sso = {
      redirectURIs = [ "https://a.example.org/" ];
      generation = 2;
    };
  };
}
