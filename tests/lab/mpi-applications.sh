#!/usr/bin/env bash
# Applications of Debian that were not written for banyan, over real switches with banyand and without it:
# molecular dynamics (LAMMPS: the package's own examples) and a self-consistent field (Quantum ESPRESSO:
# a water molecule, on several divisions of the ranks). Their results must be the same up to the order
# of sums of floats. Prints the time that each application reports, and the calls offloaded. Needs root.
#   mpi-applications.sh BUILD        EACH=2: two ranks on each host; MORE=BANYAN_MPI_AFTER=0: more of the
#                                    environment; CONTROLLER=no: one table, without banyand
. "$(dirname "$0")/lab-common.sh" mpi-applications "$1"
need_root
. "$(dirname "$0")/mpi-common.sh"
each=${EACH:-1}
ranks=$((hosts * each))
environment="BANYAN_FALLBACK=circulant ${MORE:-}"
limit=200
lammps=/usr/share/lammps/examples
pseudo=/usr/share/doc/quantum-espresso/examples/CPV/EXX-wf-example
command -v lmp >/dev/null && command -v pw.x >/dev/null && [ -d $lammps/melt ] && [ -d $pseudo ] ||
    { echo "$name: skipped: apt-get install lammps lammps-examples quantum-espresso quantum-espresso-data" >&2; exit 77; }
if [ "${CONTROLLER:-}" = no ]; then set --; else set -- --controller; fi
fabric_up "$@" || { fail "a lab with a network beside it" "$dir/up.out"; finish; }

# The numbers that a run computes: rows of LAMMPS that begin with the number of a step, the energies
# and forces of pw.x. No times.
results_of() { # FILE
    grep -aE '^ +[0-9]+( +-?[0-9.]+(e[+-][0-9]+)?)+ *$|^!.* energy|^ +(Total force|convergence has been)' "$1"
}
# Whether two files have the same rows of numbers, up to one part in 10,000 or 0.0001.
alike() { # FILE FILE
    paste -d '\n' "$1" "$2" | awk '
        NR % 2 { n = split($0, a); next }
        { if (split($0, b) != n) exit bad = 1
          for (i = 1; i <= n; i++) {
              d = a[i] - b[i]; size = a[i] < 0 ? -a[i] : a[i]
              if (a[i] ~ /^[-+0-9.]/ ? (d < 0 ? -d : d) > 1e-4 + 1e-4 * size : a[i] != b[i]) exit bad = 1
          } }
        END { exit bad || NR < 2 }'
}
time_of() { sed -nE 's/^Loop time of ([0-9.]+) .*/\1 s/p; s/^ +PWSCF .*CPU +([0-9.]+s) WALL.*/\1/p' "$1" | paste -sd ' '; }
summary_of() { echo "$(time_of "$1") ($(time_of "$2") without)"; }

for example in melt crack peptide; do
    cp -r "$lammps/$example" "$dir"
    beside openmpi "LAMMPS, $example" "sh -c 'cd $dir/$example && exec lmp -in in.$example -log none'"
done
mkdir "$dir/water"
for file in H_HSCV_PBE-1.0.UPF O_HSCV_PBE-1.0.UPF; do zcat "$pseudo/$file.gz" >"$dir/water/$file"; done
cat >"$dir/water/water.in" <<'INPUT'
&control
  calculation = 'scf', outdir = './out', pseudo_dir = './', tprnfor = .true.
/
&system
  ibrav = 1, celldm(1) = 10.0, nat = 3, ntyp = 2, ecutwfc = 25.0, nosym = .true.
/
&electrons
  conv_thr = 1e-8
/
ATOMIC_SPECIES
  O 16.0 O_HSCV_PBE-1.0.UPF
  H  1.0 H_HSCV_PBE-1.0.UPF
ATOMIC_POSITIONS bohr
  O 5.00 5.0 5.0
  H 6.43 5.0 6.1
  H 3.57 5.0 6.1
K_POINTS automatic
  2 1 1 0 0 0
INPUT
for division in "" "-nk 2" "-nk 2 -nd 1" "-nt 2"; do
    beside openmpi "Quantum ESPRESSO, pw.x${division:+ $division}" "sh -c 'cd $dir/water && exec pw.x $division -in water.in'"
done
finish
