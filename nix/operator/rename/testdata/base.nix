# A cluster without services and roles.
{
  name = "demo";
  trustDomain = "demo.flor";
  trust.roots = [ "-----BEGIN CERTIFICATE-----\nZ29sZGVu\n-----END CERTIFICATE-----\n" ];
  hosts.alpha = {
    address = "192.0.2.1";
    sshHostKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHlU6cAOaefnivrZ7DgwHThwyANkXej7Pt7IqEt0Kkmw root@forge";
    users = [ "ann" ];
  };
  users.ann.roles = [ "reader" ];
  serviceGroups = {
    control-plane = [ ];
    control-plane-write = [ ];
  };
  providers = {
    cert.hosts = [ "alpha" ];
    secret.hosts = [ "alpha" ];
    file.hosts = [ "alpha" ];
    database = {
      hosts = [ "alpha" ];
      servers.postgres.service = "postgres";
    };
    git = {
      hosts = [ "alpha" ];
      forges.forge.service = "forge";
    };
    mailbox = {
      hosts = [ "alpha" ];
      port = 4650;
      run = "/usr/local/lib/florete/mailbox";
      answer.password = { };
    };
    oidc = {
      hosts = [ "alpha" ];
      issuer = "https://login.example.org";
      registration = "https://login.example.org/register";
    };
  };
}
