{ base, merge, ... }:
merge base {
  providers.file.hosts = [ "alpha" ];
  services.wiki.files.smtp = {
    ref = "wiki/smtp";
    dependsOn = [ "file-wiki-smpt" ];
  };
}
