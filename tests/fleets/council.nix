# 13 servers of a students' council: in the network of a university, which lets in nothing from
# outside but one machine, and one server elsewhere.
{ named }:
let
  campus = n: {
    group = "campus";
    networks.campus = "141.24.0.${toString n}";
  };
  web = host: tlsName: {
    inherit host tlsName;
    port = 8080;
    visibility = "public";
  };
in
{
  pathSalt = "0f9e8d7c6b5a49382716051423324150";
  hosts = {
    door = campus 2 // {
      address = "door.council.example";
      capabilities = [ "ingress" ];
      relay = true;
      roles = [ "ingress" ];
      users = [
        "jonas"
        "mira"
        "noor"
      ];
    };
    away = {
      address = "192.0.2.80";
      capabilities = [ "ingress" ];
      relay = true;
      roles = [ "ingress" ];
    };
    auth = campus 10;
    wiki = campus 11;
    cloud = campus 12;
    mail = campus 13;
    chat = campus 14;
    tickets = campus 15;
    git = campus 16;
    builds = campus 17;
    databases = campus 18;
    metrics = campus 19;
    copies = campus 20 // {
      hidden = true;
    };
  };
  hostGroups.campus.relays = [
    "away"
    "door"
  ];
  services = {
    wiki = web "wiki" "wiki.council.example";
    cloud = web "cloud" "cloud.council.example";
    chat = web "chat" "chat.council.example";
    tickets = web "tickets" "tickets.council.example" // {
      roles = [ "sql" ];
      user = "tickets";
    };
    git = web "git" "git.council.example" // {
      roles = [ "sql" ];
      user = "git";
    };
    mail = web "mail" "mail.council.example";
    login = web "auth" "login.council.example";
    postgres = {
      host = "databases";
      port = 5432;
    };
    graphs = {
      host = "metrics";
      port = 3000;
    };
    runner = {
      host = "builds";
      port = 8093;
      user = "runner";
      roles = [ "sources" ];
      visibility = "host";
    };
    archive = {
      host = "copies";
      port = 8000;
    };
    exporter = {
      hosts = [
        "auth"
        "builds"
        "chat"
        "cloud"
        "copies"
        "databases"
        "git"
        "mail"
        "tickets"
        "wiki"
      ];
      port = 9100;
      scope = "node";
    };
    shell = {
      hosts = [
        "auth"
        "builds"
        "chat"
        "cloud"
        "copies"
        "databases"
        "git"
        "mail"
        "metrics"
        "tickets"
        "wiki"
      ];
      port = 22;
      scope = "node";
    };
    scraper = {
      host = "metrics";
      port = 9090;
      user = "prometheus";
      roles = [ "watching" ];
      visibility = "host";
    };
  };
  users = named [ "mira" "noor" ] (_: { roles = [ "admins" ]; }) // {
    jonas.roles = [
      "admins"
      "operator"
    ];
  };
  roles = {
    admins.services = [
      "archive"
      "graphs"
      "shell"
    ];
    sql.services = [ "postgres" ];
    sources.services = [ "git" ];
    watching.services = [ "exporter" ];
    ingress.services = [
      "chat"
      "cloud"
      "git"
      "login"
      "mail"
      "tickets"
      "wiki"
    ];
  };
  providers.cert.hosts = [ "door" ];
  providers.config.hosts = [ "door" ];
}
