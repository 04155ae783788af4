#!/bin/sh
# One search on the hosts that Slurm gives: a process for each task. In a folder that all hosts see:
#
#   sbatch --nodes=3 --ntasks-per-node=1 slurm.sh explore model.mcrl2
#   sbatch --nodes=3 --ntasks-per-node=8 slurm.sh check model.mcrl2 formula.mcf --checkpoint kept
#
# With MPI's launchers, after the list and the secret are written:
#
#   mpirun -n 3 sh -c 'exec mu-check explore model.mcrl2 --cluster hosts --secret secret --process "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"'
#SBATCH --job-name=mu-check
set -eu
umask 077
run=mu-check.${SLURM_JOB_ID:?not started by Slurm}
# The tasks of a host stand together in the order of their numbers. Without a port, process I listens at 7117 + I.
scontrol show hostnames "$SLURM_JOB_NODELIST" |
  awk -v each="${SLURM_NTASKS_PER_NODE:-1}" '{ for (i = 0; i < each; i++) print }' > "$run.hosts"
head -c 32 /dev/urandom | base64 > "$run.secret"
export run
srun --kill-on-bad-exit=0 sh -c 'exec mu-check "$@" --cluster "$run.hosts" --secret "$run.secret" --process "$SLURM_PROCID"' mu-check "$@"
