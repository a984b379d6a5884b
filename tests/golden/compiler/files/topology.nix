# Files by reference, a Unix socket, a host whose documents come with its system.
{ base, merge, ... }:
merge (base // { services.wiki.host = "beta"; }) {
  hosts.beta.deploy = "closure";
  services.wiki = {
    listenPort = 80;
    upstream = "unix:/run/wiki/http.sock";
    user = "wiki";
    sso = {
      mode = "oidc";
      generation = 3;
      redirectURIs = [ "https://wiki.example.org/" ];
      dependsOn = [ "file-wiki-smtp" ];
    };
    files.smtp = {
      ref = "wiki/smtp-password";
      restart = "wiki.service";
      generation = 2;
    };
    files.motd = {
      ref = "motd";
      mode = "0444";
    };
  };
  providers.config = {
    hosts = [ "alpha" ];
    interval = 60;
  };
  providers.file.hosts = [ "alpha" ];
  providers.oidc = {
    hosts = [ "alpha" ];
    issuer = "https://auth.example.org";
  };
}
